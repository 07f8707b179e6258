"""Stand-ins: recordings in one .npz file each that are cut into windows when they are loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack, final

from dicot.core.errors import InputError, MissingDataError
from dicot.core.storage import data_folders
from dicot.data.datasets.base import Card, DataSet, Sizes, Split, fingerprint, shaped
from dicot.data.datasets.prepared import FAMILY, PreparedParts
from dicot.data.naming import naming
from dicot.data.npyfile import load_npz
from dicot.data.policies import Array, Policies


@final
@dataclass(frozen=True)
class StandIn(DataSet):
    """A set in one file: its card, its arrays and the function that cuts them into windows."""

    facts: Card
    file: str  # in the folder large/ of a data folder
    arrays: Sequence[str]  # that the file must hold
    content: str  # the same, and how it comes from the publisher's files, in words
    cut: Callable[[Mapping[str, Array]], PreparedParts]
    stands_in_for: str = ""
    class_sizes: tuple[int, ...] = ()
    name: str = field(init=False)
    family: str | None = field(init=False)
    transfer_channels: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("name", "family", "transfer_channels"):
            object.__setattr__(self, name, getattr(self.facts, name))

    @property
    def sizes(self) -> Sizes:
        return Sizes(*(getattr(self.facts, name) for name in Sizes._fields))

    def is_here(self) -> bool:
        return any(path.is_file() for path in self._paths())

    def card(self) -> Card:
        self.path()
        return self.facts

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return both parts; a file that gives other windows than the card says is refused."""
        path = self.path()
        with naming(path):
            arrays = load_npz(path, self.arrays)
            absent = sorted(set(self.arrays) - set(arrays))
            if absent:
                raise InputError(f"The file must hold {self.content}; {', '.join(absent)} is missing.")
            try:
                split = self.cut(arrays).split
            except (TypeError, IndexError) as error:
                raise InputError(f"The file must hold {self.content}; its arrays differ ({error}).") from error
            actual = fingerprint(split)
            if actual != self.facts.fingerprint:
                raise InputError(
                    f"Its windows have the fingerprint {actual}; those of {self.name} have "
                    f"{self.facts.fingerprint}. The file holds other recordings; replace it with the right one."
                )
        return shaped(split, channels, **policies)

    def _paths(self) -> list[Path]:
        return [folder / FAMILY / self.file for folder in data_folders()]

    def path(self) -> Path:
        """Return where the file is, or raise the error that says what to download, where to put it, how to check it."""
        for path in self._paths():
            if path.is_file():
                return path
        places = " or ".join(map(str, self._paths()))
        raise MissingDataError(
            f"The data set {self.name} is not on this machine (looked for {places}). Download it from "
            f"{self.facts.source} and save an .npz there that holds {self.content}. To check the result: "
            f"dicot list datasets {self.name} --check"
        )
