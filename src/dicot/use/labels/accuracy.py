"""honest_accuracy: what a classifier of a few labels is worth, by the labelled cases themselves."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student_t
from sklearn.metrics import f1_score
from sklearn.utils import check_array

from dicot.core.errors import listed
from dicot.data.labels import check_groups
from dicot.model.fewlabels import FewLabelClassifier, class_numbers

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

FOLDS = 5
MANY_LABELS = 500  # from which they are dealt out once
MOST_CASES = 10_000  # that stand for all
LEVEL = 0.95
FEW = 30  # labelled cases below which an interval is too wide to decide much, and its coverage is not to be relied on
# A label counts as one case divided by this: held-out answers vary together, because their fits share labels, the
# classifier of all labels is none of these fits, and shares of classes are estimates. Found by simulation, see
# docs/log.md: without it the interval holds the truth in 77 to 95 %.
IF_DRAWN, IF_CHOSEN = 1.5, 2.0
UNEVEN = 0.5  # of an even share, below which a class is rare
TINY = 1e-12


class ClassScore(NamedTuple):
    """How one class fares, as shares between 0 and 1; NaN where nothing can be said."""

    label: Any
    cases: float  # of this class
    recall: float  # how many of them are found
    precision: float  # how often it is right where the answer is this class


def class_scores(classes: Sequence[Any], confusion: Any, shares: Any = None) -> tuple[ClassScore, ...]:
    """Return recall and precision of each class from a confusion matrix (K, K): truth by answer.

    `shares` (K,) says how frequent the classes are where that differs from the matrix: precision depends on it.
    """
    matrix = np.asarray(confusion, np.float64)
    cases = matrix.sum(axis=1)
    weighted = matrix
    if shares is not None:
        weighted = matrix * (np.asarray(shares) / np.maximum(cases, TINY))[:, None]
    answers = weighted.sum(axis=0)
    recall = _ratio(np.diag(matrix), cases)
    precision = _ratio(np.diag(weighted), answers)
    columns = cases.tolist(), recall.tolist(), precision.tolist()
    return tuple(ClassScore(*row) for row in zip(classes, *columns, strict=True))


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, and NaN where the whole is 0."""
    ratio: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return ratio


def is_uneven(counts: Any) -> bool:
    """Tell whether some class is so rare that accuracy says little of it: less than half of an even share."""
    counts = np.asarray(counts, np.float64)
    counts = counts[counts > 0]
    return len(counts) > 1 and float(counts.min() / counts.sum()) < UNEVEN / len(counts)


def constant_scores(counts: Any) -> tuple[float, float]:
    """Return accuracy and macro-F1 of always answering the most frequent class of these counts (K,)."""
    counts = np.asarray(counts, np.float64)
    counts = counts[counts > 0]
    accuracy = float(counts.max() / counts.sum())
    return accuracy, 2 * accuracy / (1 + accuracy) / len(counts)


@dataclass(frozen=True)
class HonestAccuracy:
    """Accuracy of a FewLabelClassifier by cross-validation, as shares between 0 and 1.

    They are NaN where nothing could be held out. `str` gives it as one sentence.
    """

    accuracy: float  # of held-out cases, by class where `by_class`
    low: float  # the 95 % interval of the accuracy
    high: float
    macro_f1: float  # mean over the classes that were held out, and over repetitions
    n_labelled: int
    n_scored: int  # labelled cases that were held out and whose class had other labels meanwhile
    n_groups: int  # of the labelled cases; 0 where no groups were given or there is only one
    repeats: int
    warnings: tuple[str, ...]  # what these numbers do not tell, one sentence each
    group_name: str = "group"  # what a group is, such as "recording" or "subject"
    by_class: bool = False  # each class counts by its estimated share of the cases without a label
    classes: tuple[Any, ...] = ()
    # How many held-out cases of each class (rows) got which answer (columns), on average over the repetitions.
    confusion: tuple[tuple[float, ...], ...] = ()
    shares: tuple[float, ...] = ()  # of the classes: what each weighs in the accuracy

    @property
    def per_class(self) -> tuple[ClassScore, ...]:
        """Recall and precision of each class. Precision counts the classes by their shares."""
        return class_scores(self.classes, self.confusion, self.shares) if self.n_scored else ()

    @property
    def constant(self) -> str:
        """Say what always giving the most frequent answer would score; empty where nothing was scored."""
        if not self.n_scored:
            return ""
        usual = self.classes[int(np.argmax(self.shares))]
        accuracy, macro_f1 = constant_scores(self.shares)
        scores = f"accuracy {100 * accuracy:.1f} %, macro-F1 {100 * macro_f1:.1f} %"
        return f"Always answering {str(usual)!r} would score: {scores}."

    def __str__(self) -> str:
        if not self.n_scored:
            return f"The accuracy is not known: none of {self.n_labelled} labelled cases could be held out."
        accuracy = (
            f"ccuracy {100 * self.accuracy:.1f} % (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f}) for "
            f"{self._question}"
        )
        macro_f1 = f"acro-F1 {100 * self.macro_f1:.1f} %"
        scores = f"A{accuracy}, m{macro_f1}"
        if is_uneven(self.shares):  # accuracy is high where a rare class is never found
            scores = f"M{macro_f1}, a{accuracy}"
        sentence = f"{scores}, from {self.n_scored} labelled cases"
        if self.n_groups:
            sentence += f" of {self.n_groups} {self.group_name}s, held out by {self.group_name}"
        sentence += "."
        if self.by_class:
            sentence += " Each class counts by its estimated share of the cases without a label."
        return f"{sentence} {self.constant}"

    @property
    def _question(self) -> str:
        """Which cases the accuracy is about."""
        if not self.n_groups:
            return "other cases from the same sources as the labelled ones"
        unit = self.group_name
        return f"cases of a new {unit} (those of a {unit} that has labels are often easier)"

    def measured(self) -> str:
        """Say in a sentence how the accuracy was measured; empty where it could not be."""
        if not self.n_scored:
            return ""
        how = f"whole {self.group_name}s together" if self.n_groups else "one by one"
        n_parts = min(FOLDS, self.n_groups or FOLDS)
        often = "once" if self.repeats == 1 else f"{self.repeats} times over"
        return f"Measured by hiding the labels of one of {n_parts} parts at a time, {how}, {often}."


def honest_accuracy(
    x: Any,
    y: Any,
    groups: Any = None,
    *,
    repeats: int | None = None,
    suggested: bool = False,
    random_state: int = 0,
    group_name: str = "group",
    on_fit: Callable[[int, int], None] = lambda done, total: None,
) -> HonestAccuracy:
    """Estimate how often a FewLabelClassifier of these labels is right, by cross-validation over the labelled cases.

    In each repetition the labelled cases are dealt out to five folds, the classes evenly. A fold's labels are hidden,
    the classifier is fitted to all cases and the other labels, and its answers for the fold are counted.

    Without groups the number answers: how often is the classifier right about another case from the same sources, such
    as a window of a recording that has labels? With groups, such as persons or recordings, all labels of a group are
    hidden together, and it answers: how often is it right about a case of a new group? Windows of one recording
    resemble each other, so the first is too good for other recordings. The second is often too low for those that have
    labels, and with few labels in few groups in any case: with some hidden, too few labels of a class are left.

    Labels that were drawn say how frequent each class is, and each counts alike. Labels that were chosen say nothing of
    that: each class then counts by its share of the answers for cases without a label, and cases of unequal weight
    count as fewer in the interval. As many labels of every class are taken for chosen.

    The interval is Wilson's for a share, at 95 %: it keeps inside 0 and 1 and has a width where every answer was right.
    It counts each labelled case once, and as less than one (1/1.5 where labels were drawn, 1/2 where they were chosen),
    because the fits share labels. With groups, the number of cases is replaced by that of independent ones which would
    vary as much as the groups do (Korn and Graubard's effective sample size), with Student's quantile.

    Of more than 10,000 cases, those with a label and some of the others, 10,000 in all, stand for all of them.

    Parameters
    ----------
    x : (N, F) embeddings of all cases, with and without a label
    y : (N,) labels; -1, NaN, None and the empty string stand for an unknown one
    groups : (N,) whose case it is, or None
    repeats : how often the labelled cases are dealt out anew; by default five times, and once of 500 labels or more:
        chance then matters little, and a fit takes seconds
    suggested : the labelled cases were chosen, by `suggest` or by hand, and not drawn at random: each class
        counts by its estimated share
    random_state : draws the folds
    group_name : what a group is, in the sentences: "recording" or "subject"
    on_fit : is told how many classifiers are fitted, and of how many
    """
    x = check_array(x, dtype=(np.float32, np.float64), input_name="x", estimator="honest_accuracy")
    classes, numbers = class_numbers(y, len(x))
    known = np.flatnonzero(numbers >= 0)
    truth = numbers[known]
    repeats = int(repeats or (5 if len(known) < MANY_LABELS else 1))
    members = None
    if groups is not None:
        members = np.unique(check_groups(groups, len(x), "groups")[known], return_inverse=True)[1]
    # Where every case has a label none was chosen, and there are no others whose shares could be estimated.
    has_unlabelled = len(known) < len(numbers)
    warnings = _warnings(classes, truth, members, suggested and has_unlabelled, group_name)
    if members is not None and members.max() == 0:
        members = None

    sample = _sample(numbers, random_state)
    answers = _HeldOutAnswers.of(x[sample], numbers[sample], members, repeats, random_state, on_fit)
    is_scored = answers.held > 0
    shares_right = answers.right[is_scored] / answers.held[is_scored]
    if not len(shares_right):
        warnings.append(
            "No labelled case could be held out with two classes left: the accuracy is not known. Label at least two "
            "cases of two classes, in two groups where there are groups."
        )
    by_class = suggested or bool(np.ptp(np.bincount(truth)) == 0)
    weights = _weights(truth[is_scored], answers.others if by_class else np.zeros(len(classes)))
    scored_members = None if members is None else members[is_scored]
    low, high = _interval(shares_right, scored_members, weights, IF_CHOSEN if by_class else IF_DRAWN)
    class_shares = np.bincount(truth[is_scored], weights, len(classes))
    return HonestAccuracy(
        accuracy=float(weights @ shares_right) if len(shares_right) else math.nan,
        low=low,
        high=high,
        macro_f1=float(np.mean(answers.macro_f1)) if answers.macro_f1 else math.nan,
        n_labelled=len(known),
        n_scored=len(shares_right),
        n_groups=0 if members is None else int(members.max()) + 1,
        repeats=repeats,
        warnings=tuple(warnings),
        group_name=group_name,
        by_class=by_class and has_unlabelled,
        classes=tuple(classes.tolist()),
        confusion=tuple(tuple(row) for row in answers.confusion.tolist()),
        shares=tuple(class_shares.tolist()),
    )


class _HeldOutAnswers(NamedTuple):
    """What classifiers answered for labelled cases (L,) whose labels they had not seen."""

    right: Floats  # (L,) how often the answer was right
    held: Floats  # (L,) how often there was one
    others: Floats  # (K,) how many cases without a label were taken for each class
    confusion: Floats  # (K, K) truth by answer, on average over the repetitions
    macro_f1: list[float]  # of each repetition

    @classmethod
    def of(
        cls,
        x: Any,
        numbers: Rows,
        members: Rows | None,
        repeats: int,
        random_state: int,
        on_fit: Callable[[int, int], None],
    ) -> "_HeldOutAnswers":
        """Deal the labelled cases out to folds, `repeats` times, and answer for each fold by the others' labels."""
        known = np.flatnonzero(numbers >= 0)
        truth = numbers[known]
        n_classes = int(truth.max()) + 1
        rng = np.random.default_rng(random_state)
        found = cls(
            np.zeros(len(known)), np.zeros(len(known)), np.zeros(n_classes), np.zeros((n_classes, n_classes)), []
        )
        for repeat in range(repeats):
            guesses = np.full(len(known), -1)
            dealt = list(folds(truth, members, rng))
            for done, fold in enumerate(dealt):
                on_fit(repeat * len(dealt) + done, repeats * len(dealt))
                guesses[fold], counts = _guesses(x, numbers, known, fold)
                found.others[:] += counts
            scored = guesses >= 0
            found.right[:] += guesses == truth
            found.held[:] += scored
            np.add.at(found.confusion, (truth[scored], guesses[scored]), 1 / repeats)
            if scored.any():
                present = np.unique(truth[scored])
                score = f1_score(truth[scored], guesses[scored], labels=present, average="macro", zero_division=0)
                found.macro_f1.append(score)
        return found


def _sample(numbers: Rows, random_state: int) -> Rows:
    """Return the cases that stand for all (N,): those with a label and, of very many others, some that are drawn.

    Scaling and answering for all of a million cases in each of 25 fits would take minutes.
    """
    most, known = MOST_CASES, np.flatnonzero(numbers >= 0)
    if len(numbers) <= most or len(known) >= most:
        return np.arange(len(numbers))
    others = np.random.default_rng(random_state).permutation(np.flatnonzero(numbers < 0))
    return np.sort(np.concatenate([known, others[: most - len(known)]]))


def _weights(truth: Rows, others: Floats) -> Floats:
    """Return what each scored case (n,) weighs: its class counts as often as among the cases without a label.

    `others` (K,) counts the answers for these. Labels that were chosen by class say nothing of how frequent each is.
    """
    counts = np.bincount(truth, minlength=len(others))
    shares = np.where(counts > 0, others, 0.0)
    if not shares.sum():  # labels were drawn, or every case has one: all weigh the same
        shares = counts.astype(np.float64)
    weights = (shares / np.maximum(counts, 1))[truth]
    return np.asarray(weights / max(float(weights.sum()), 1.0))


def _guesses(x: Any, numbers: Rows, known: Rows, fold: Rows) -> tuple[Rows, Floats]:
    """Return a class number for each case of the fold, fitted without their labels; -1 where no fit could be right.

    Beside it how many cases without a label are taken for each class (K,).
    """
    hidden, n_classes = known[fold], int(numbers.max()) + 1
    seen = numbers.copy()
    seen[hidden] = -1
    remaining = np.unique(seen[seen >= 0])
    if len(remaining) < 2:
        return np.full(len(fold), -1), np.zeros(n_classes)
    found = FewLabelClassifier().fit(x, seen).transduction_
    others = np.bincount(found[numbers < 0], minlength=n_classes).astype(np.float64)
    return np.where(np.isin(numbers[hidden], remaining), found[hidden], -1), others


def folds(truth: Rows, members: Rows | None, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield the labelled cases of each fold. Without groups, a class with one label is in no fold."""
    fold = np.full(len(truth), -1)
    if members is None:
        for c in np.unique(truth):
            rows = rng.permutation(np.flatnonzero(truth == c))
            if len(rows) > 1:  # of one class, in different folds: some of each class remain
                fold[rows] = (np.arange(len(rows)) + rng.integers(FOLDS)) % FOLDS
    else:
        fold = _dealt(truth, members, rng)[members]
    for f in np.unique(fold[fold >= 0]):
        yield np.flatnonzero(fold == f)


def _dealt(truth: Rows, members: Rows, rng: np.random.Generator) -> Rows:
    """Return the fold of each group: large groups first, each to where its classes have been dealt least of."""
    counts = np.zeros((members.max() + 1, truth.max() + 1))
    np.add.at(counts, (members, truth), 1)
    counts /= np.maximum(counts.sum(axis=0), 1)  # shares of each class
    order = rng.permutation(len(counts))
    order = order[np.argsort(-np.square(counts[order]).sum(axis=1), kind="stable")]
    dealt = np.zeros((min(FOLDS, len(counts)), counts.shape[1]))
    out = np.zeros(len(counts), dtype=np.intp)
    for group in order:
        growth = np.square(dealt + counts[group]).sum(axis=1) - np.square(dealt).sum(axis=1)
        empty = ~dealt.any(axis=1)
        out[group] = int(np.argmin(np.where(empty == empty.any(), growth, np.inf)))  # no fold stays empty
        dealt[out[group]] += counts[group]
    return out


def _interval(shares: Floats, members: Rows | None, weights: Floats, fewer: float) -> tuple[float, float]:
    """Return Wilson's interval for the mean of shares (n,), each from 0 to 1, at the effective number of cases.

    Unequal weights (n,), which sum to 1, make cases count as fewer (Kish's effective sample size), and
    the effective number is divided by `fewer`.
    """
    if not len(shares):
        return 0.0, 1.0
    n = round(1 / float(weights @ weights), 9)
    quantile = float(norm.ppf((1 + LEVEL) / 2))
    mean = round(float(weights @ shares), 12)  # weights sum to 1 but for the last bit
    if members is not None:
        numbers = np.unique(members, return_inverse=True)[1]
        count = int(numbers.max()) + 1
        if count == 1:
            return 0.0, 1.0
        residuals = np.bincount(numbers, weights * (shares - mean))
        variance = count / (count - 1) * float(np.square(residuals).sum())
        independent = float(count)  # where all answers are right, or all wrong, nothing tells how alike groups are
        if 0 < mean < 1:
            independent = mean * (1 - mean) / variance if variance > 0 else math.inf
        wider = quantile / float(student_t.ppf((1 + LEVEL) / 2, count - 1))
        n = min(n, independent * wider**2)
    spread = quantile**2 * fewer / n
    centre = (mean + spread / 2) / (1 + spread)
    half = math.sqrt(mean * (1 - mean) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


def _warnings(classes: NDArray[Any], truth: Rows, members: Rows | None, suggested: bool, unit: str) -> list[str]:
    counts = np.bincount(truth)
    sentences = []
    single = [str(classes[number]) for number in np.flatnonzero(counts == 1)]
    if single:
        sentences.append(f"Only one label of {_named(single)}: nothing is known of such cases. Label more of them.")
    if members is not None:
        sentences += _warnings_of_groups(classes, truth, members, unit)
    if suggested:
        sentences.append(
            "The labelled cases were chosen, not drawn at random: shares of classes are estimates, and where easy or "
            "hard cases of a class were preferred, the accuracy may lie outside. Label some cases drawn at random to "
            "find out; where these were drawn, say --drawn (in Python suggested=False)."
        )
    if len(truth) < FEW:
        sentences.append(f"Only {len(truth)} labelled cases: the interval is rough below {FEW}. Label more cases.")
    return sentences


def _warnings_of_groups(classes: NDArray[Any], truth: Rows, members: Rows, unit: str) -> list[str]:
    if members.max() == 0:
        return [
            f"All labelled cases are of one {unit}, so cases were held out one by one: nothing is known of other "
            f"{unit}s. Label cases of more {unit}s."
        ]
    lonely = []
    for number, label in enumerate(classes.tolist()):
        groups_of_class = members[truth == number]
        if len(groups_of_class) > 1 and len(np.unique(groups_of_class)) == 1:
            lonely.append(str(label))
    if not lonely:
        return []
    return [
        f"All labels of {_named(lonely)} are in one {unit}: nothing is known of such cases in other {unit}s. Label "
        f"more of them in other {unit}s."
    ]


def _named(classes: list[str]) -> str:
    return f"{'class' if len(classes) == 1 else 'classes'} {listed([repr(name) for name in classes])}"
