"""Stand-ins: recordings at hand, in one .npz file each, that are cut into windows when they are loaded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from dicot.data.naming import naming
from dicot.data.npyfile import load_npz
from dicot.data.policies import Array, Policies
from dicot.data.splits import with_policies
from dicot.datasets.base import Card, Split, fingerprint
from dicot.datasets.folders import data_folders
from dicot.datasets.prepared import FAMILY, Prepared
from dicot.errors import InputError, MissingDataError


@dataclass(frozen=True)
class StandIn:
    """One data set: its card, its file and the function that cuts the file's arrays into windows."""

    card: Card
    file: str  # in the folder large/ of a data folder
    arrays: Sequence[str]  # what the file must hold
    content: str  # the same, and how it comes from the publisher's files, in words
    cut: Callable[[Mapping[str, Array]], Prepared]

    def is_here(self) -> bool:
        """Whether the file is on this machine."""
        return any(path.is_file() for path in self._places())

    def path(self) -> Path:
        """Where the file is, or the error that says what to download, where to put it and which command checks it."""
        for path in self._places():
            if path.is_file():
                return path
        places, name = " or ".join(map(str, self._places())), self.card.name
        raise MissingDataError(
            f"The data set {name} is not on this machine (looked for {places}). Download it from {self.card.source} "
            f"and save an .npz there that holds {self.content}. To check the result: dicot data check {name}"
        )

    def _places(self) -> list[Path]:
        return [folder / FAMILY / self.file for folder in data_folders()]

    def load(self, **policies: Unpack[Policies]) -> Split:
        """Both parts; a file that gives other windows than the card says is refused."""
        path = self.path()
        with naming(path):
            held = load_npz(path, self.arrays)
            lost = sorted(set(self.arrays) - set(held))
            if lost:
                raise InputError(f"The file must hold {self.content}; {', '.join(lost)} is missing.")
            try:
                split = self.cut(held).split
            except (TypeError, IndexError) as error:
                raise InputError(f"The file must hold {self.content}; its arrays are others ({error}).") from error
            found = fingerprint(split)
            if found != self.card.fingerprint:
                raise InputError(
                    f"Its windows have the fingerprint {found}; those of {self.card.name} have "
                    f"{self.card.fingerprint}. The file holds other recordings; put the right one in its place."
                )
        return with_policies(split, **policies)
