"""What tests of reports share."""

import pytest

from bench.paper import reports, suites  # noqa: F401  (the paper's suites and their layouts)


@pytest.fixture
def quick(monkeypatch):
    """Draw figures without laying them out: their looks are tested elsewhere, and it takes most of the time."""
    from matplotlib.figure import Figure

    picture = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    monkeypatch.setattr(Figure, "savefig", lambda self, target, **options: target.write(picture))
