"""What a data set is: its Card (facts that cost nothing to read) and its Split (the cases)."""

from dataclasses import dataclass

from dicot.windows import Split

__all__ = ["Card", "Split"]


@dataclass(frozen=True)
class Card:
    """The facts about one data set; None where they cannot be told without reading all of it."""

    name: str
    family: str | None  # "ucr", "uea", "large", "synthetic"
    n_train: int
    n_test: int
    n_channels: int
    n_times: int | None
    n_classes: int
    source: str = ""
    licence: str = ""
    citation: str = ""
