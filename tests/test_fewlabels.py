"""FewLabelClassifier: what a few labels and many cases give, and that it is an estimator like any other."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dicot import FewLabelClassifier

# scikit-learn exempts its own semi-supervised estimators from this check by their names.
UNKNOWN = {"check_classifiers_classes": "asks for a class called -1, which stands for an unknown label"}


@parametrize_with_checks([FewLabelClassifier()], expected_failed_checks=lambda estimator: UNKNOWN)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
