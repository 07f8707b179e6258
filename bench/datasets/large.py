"""Large data sets: made once from their publishers' files, then read from a folder of plain arrays and a card."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from bench.datasets.names import declared
from dicot.core.errors import InputError, MissingDataError
from dicot.core.storage import data_folders
from dicot.data import Split, Windows
from dicot.data.cases import Policies
from dicot.data.datasets.base import Card, DataSet, Sizes, fingerprint, shaped
from dicot.data.npyfile import map_npy

FAMILY = "large"
CARD = "card.json"
HOW = "as the data set was prepared"


@final
@dataclass(frozen=True)
class LargeSet(DataSet):
    """A prepared data set: where its raw files come from, and how its folder is read.

    Of a folder that was prepared elsewhere nothing but the name is known.
    """

    name: str
    source: str = ""  # the publisher's page
    licence: str = ""
    citation: str = ""
    download: str = ""  # what to fetch there and what the raw folder must hold
    sizes: Sizes | None = None  # what the publisher's files give
    stated: Sizes | None = None  # what the Di-COT paper states, where it differs
    transfer_channels: tuple[int, ...] = ()
    paper_transfer_channels: tuple[int, ...] = ()
    drawn: bool = False  # True: training draws its windows from segments, which the folder must hold
    family: str | None = FAMILY
    paper_subset_seed: int | None = None

    @property
    def paper_sizes(self) -> Sizes | None:  # type: ignore[override]
        return self.stated or self.sizes

    def is_here(self) -> bool:
        return self._find() is not None

    def card(self) -> Card:
        return _read_card(self.folder())

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Map both parts into memory; values are read only where `channels` or a policy ask for it (D-51)."""
        folder, card = self.folder(), self.card()
        train, test = (_read_part(folder, part, card) for part in ("train", "test"))
        if self.drawn and train.segments is None:
            raise InputError(
                f"{folder} was prepared by an earlier release and holds no segments to draw windows from. "
                f"Prepare {self.name} again: python -m bench prepare {self.name} --raw DIR."
            )
        return shaped(Split(train, test, card.family, card.name, HOW), channels, **policies)

    def check(self) -> Card:
        card, actual = self.card(), fingerprint(self.load())
        if actual != card.fingerprint:
            raise InputError(
                f"{self.folder()}: the card's fingerprint is {card.fingerprint}, that of the arrays {actual}. "
                f"The files were changed or damaged; prepare {card.name} again."
            )
        return card

    def folder(self) -> Path:
        """Return where the set is, or raise the error that says what to download and which commands follow."""
        if (folder := self._find()) is not None:
            return folder
        places = " or ".join(str(root / FAMILY / self.name) for root in data_folders())
        raise MissingDataError(
            f"The data set {self.name} is not on this machine (looked for {places}). Download it from {self.source}: "
            f"{self.download} Put that into a folder DIR of your choice, then run: "
            f"python -m bench prepare {self.name} --raw DIR. "
            f"To check the result: python -m bench list datasets {self.name} --check"
        )

    def _find(self) -> Path | None:
        return next((folder for folder in _folders() if folder.name == self.name), None)


def prepared_folders() -> Iterator[LargeSet]:
    """Yield every prepared set on this machine."""
    return (LargeSet(folder.name) for folder in _folders())


def _folders() -> Iterator[Path]:
    for root in data_folders():
        for path in sorted((root / FAMILY).glob(f"*/{CARD}")):
            if path.parent.name[0] != ".":
                yield path.parent


def card_of(dataset: DataSet, sizes: Sizes, **made: Any) -> Card:
    """Write a card: what the declaration of a set says, its sizes, and what else there is to say."""
    said = {one.name: getattr(dataset, one.name) for one in fields(Card) if hasattr(dataset, one.name)}
    return Card(**said | sizes._asdict() | made)


def _read_card(folder: Path) -> Card:
    path = folder / CARD
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        facts: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
        card = Card(**facts)
        if card.name != folder.name:  # it becomes part of file names
            raise ValueError(f"it belongs to {str(card.name)[:80]!r}")
        return card
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a card ({error}). Prepare the data set again.") from error


def _read_part(folder: Path, part: str, card: Card) -> Windows:
    """Read one part, whose sizes and types must be those of the card."""
    n = card.n_train if part == "train" else card.n_test
    wanted = {"X": ((n, card.n_channels, card.n_times), "f"), "y": ((n,), "i"), "group": ((n,), "iU")}
    if part == "train" and card.segment is not None:
        wanted["segments"] = (n, card.n_channels, card.segment), "f"
    arrays = {}
    for letter, (shape, kinds) in wanted.items():
        path = folder / f"{letter}_{part}.npy"
        try:
            array = arrays[letter] = map_npy(path)
            if array.shape != shape or array.dtype.kind not in kinds:
                raise InputError(f"{path}: the card says {shape}; the file holds {array.shape} of {array.dtype}.")
        except InputError as error:
            raise InputError(f"{error} Prepare {card.name} again.") from error
    return Windows(arrays["X"], np.array(arrays["y"]), np.array(arrays["group"]), card.name, arrays.get("segments"))


HARTH, PAMAP2, SKODA_PAPER, SLEEP, WISDM2, ECG = (
    LargeSet(**declared(name)) for name in ("harth", "pamap2", "skoda-paper", "sleep", "wisdm2", "ecg")
)
# The shared file is a pickled dictionary, which is not loaded here: unpickling can run code.
CONVERT_PAMAP2 = (
    """python -c "import numpy as np; d = np.load('PAMAP2.npy', allow_pickle=True).item(); """
    """np.savez('PAMAP2.npz', **{k: d[k] for k in d if hasattr(d[k], 'dtype')})\""""
)
PAMAP2_PAPER = replace(
    PAMAP2,
    name="pamap2-paper",
    source="https://github.com/Navidfoumani/Series2Vec",
    licence="CC BY 4.0 (of the recordings); see the source for the arrays",
    citation=f"{PAMAP2.citation}; Foumani et al., Series2Vec, Data Mining and Knowledge Discovery 38, 2024",
    download="PAMAP2.npy in the folder of large data sets that its README links (it may be called PAMAP2-001.npy). "
    f"It is a pickled dictionary, which you convert yourself, where you trust it ({CONVERT_PAMAP2}), into PAMAP2.npz.",
    sizes=PAMAP2.stated,
)
SKODA_BLOCKED = replace(SKODA_PAPER, name="skoda-blocked", sizes=Sizes(n_channels=60, n_times=50, n_classes=11))
ECG_FIXED = replace(ECG, name="ecg-fixed", drawn=False)
ECG_FULL = replace(ECG, name="ecg-full", sizes=Sizes(59_922, 16_645, 2, 2500, 4), stated=None, drawn=False)
LARGE_SETS = (HARTH, PAMAP2, PAMAP2_PAPER, SKODA_PAPER, SKODA_BLOCKED, WISDM2, SLEEP, ECG, ECG_FIXED, ECG_FULL)
