"""What tests of reports share."""

import pytest

from bench.paper import reports  # noqa: F401  (the layouts of the paper)


@pytest.fixture
def quick(monkeypatch):
    """Draw figures without laying them out: their looks are tested elsewhere, and it takes most of the time."""
    from matplotlib.figure import Figure

    picture = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    monkeypatch.setattr(Figure, "savefig", lambda self, target, **options: target.write(picture))
