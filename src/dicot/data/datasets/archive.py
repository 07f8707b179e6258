"""The UCR and UEA archives by name: from files on this machine, or fetched through aeon."""

import http.client
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from dicot.core.errors import InputError, MissingDataError
from dicot.core.storage import cache_folder
from dicot.data.cases import to_cases, true_lengths
from dicot.data.datasets.archive_files import (
    archive_files,
    archive_sizes,
    find_archive_file,
    other_part,
    read_archive,
    set_name,
)
from dicot.data.datasets.base import Card, DataSet, Sizes, Split, differences, pick_channels
from dicot.data.datasets.names import OFFICIAL, UCR, UEA
from dicot.data.policies import Array, Policies, RawCases, cases_where
from dicot.data.splits import check_split

SOURCE = "https://timeseriesclassification.com"
_CITATIONS = {
    "ucr": "Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
    "uea": "Bagnall et al., The UEA multivariate time series classification archive, 2018, arXiv:1811.00075",
}
_UNKNOWN = Sizes()
_INTERPOLATE: Mapping[str, Any] = {"missing": "interpolate"}
# What the card of the set that comes with the library says beyond what can be read from its file.
_ITALY_POWER_DEMAND = {
    "source": "https://timeseriesclassification.com/description.php?Dataset=ItalyPowerDemand",
    "licence": "none stated; the archive asks to be cited",
    "citation": "Keogh et al., Intelligent icons: integrating lite-weight data mining and visualization into GUI "
    "operating systems, ICDM 2006; Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
}


@final
@dataclass(frozen=True)
class ArchiveSet(DataSet):
    """A UCR or UEA set, or a user's own in one of the archives' forms: from files, or through aeon."""

    name: str
    family: str | None = None  # None: not in the archives, so only files of this machine have it
    sizes: Sizes = _UNKNOWN  # the published ones; other files are refused
    about: Mapping[str, str] = field(default_factory=dict)  # source, licence and citation where they are not the usual
    benchmark_policies = _INTERPOLATE

    def is_here(self) -> bool:
        return find_archive_file(self.name) is not None

    def card(self) -> Card:
        path = find_archive_file(self.name)
        if path is None:
            raise self._missing()
        about: dict[str, Any] = {
            "source": SOURCE,
            "licence": "see the source",
            "citation": _CITATIONS.get(self.family or "", "see the source"),
        }
        return Card(self.name, self.family, *archive_sizes(path), **(about | dict(self.about)))

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return the official split in the archive setting: zeros at the end up to the longest case, original values.

        As in the authors' code that is the longest of both parts (D-52); an `unequal` that is asked for goes by the
        training part. Labels become 0 .. K-1 in the order of the sorted training labels (as numbers where all of them
        are numbers).
        """
        parts = read_archive(find_archive_file(self.name) or self._download())
        try:
            train, test = ((to_cases(X), y) for X, y in parts)
            longest = max(int(true_lengths(cases).max()) for cases, _ in (train, test))
            self._check_sizes(train, test, longest)
            usual: Policies = policies if "unequal" in policies else {"unequal": "pad", "length": longest, **policies}
            y_train, y_test = _encode(train[1], test[1])
            split = check_split(
                (_end_channels(train[0]), y_train),
                (_end_channels(test[0]), y_test),
                name=self.name,
                family=self.family,
                how="given by the archive",
                **usual,
            )
        except InputError as error:
            raise InputError(f"Data set {self.name}: {error}") from error
        return pick_channels(split, channels)

    def _download(self) -> Path:
        """Fetch NAME_TRAIN.ts and NAME_TEST.ts with aeon; they are moved to the cache only when complete."""
        cache = cache_folder()
        try:
            from aeon.datasets import load_classification

            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as fresh:
                load_classification(self.name, extract_path=fresh, load_equal_length=False, load_no_missing=False)
                train = Path(fresh) / self.name / f"{self.name}_TRAIN.ts"
                if not (train.is_file() and other_part(train).is_file()):
                    raise FileNotFoundError(f"aeon fetched no {self.name}_TRAIN.ts and {self.name}_TEST.ts")
                (cache / self.name).mkdir(exist_ok=True)
                # The training file last: its presence says that the set is there.
                for file in (other_part(train), train):
                    os.replace(file, cache / self.name / file.name)
        except (ImportError, OSError, ValueError, zipfile.BadZipFile, http.client.HTTPException) as error:
            raise self._missing(f" and could not be fetched ({error})") from error
        return cache / self.name / f"{self.name}_TRAIN.ts"

    def _missing(self, why: str = "") -> MissingDataError:
        """Return the error for a set that is not here: what to put where, which commands follow."""
        name = self.name
        return MissingDataError(
            f"The data set {name} is not on this machine{why}. Either put {self.family}/{name}.npz (X_train, y_train, "
            f"X_test, y_test), or {name}/{name}_TRAIN and {name}_TEST as .ts, .tsv or .arff from {SOURCE}, into the "
            f"folder that DICOT_DATA names, or with a network run: pip install 'dicot[aeon]' && "
            f"python -c \"import dicot; dicot.load('{name}')\". To check the result: dicot data check {name}"
        )

    def _check_sizes(self, train: tuple[RawCases, Array], test: tuple[RawCases, Array], longest: int) -> None:
        """Refuse files of other sizes than the archive's: they are truncated or another data set."""
        if self.sizes == _UNKNOWN:
            return
        actual = Sizes(len(train[0]), len(test[0]), train[0][0].shape[0], longest, len(np.unique(train[1])))
        if wrong := differences(actual, self.sizes):
            raise InputError(
                f"the files hold {', '.join(wrong)}. Fetch them again, or rename them if this is not the archive's set."
            )


def archive_sets() -> Iterator[ArchiveSet]:
    """Yield the 158 sets of both archives."""
    for family, names in (("ucr", UCR), ("uea", UEA)):
        for name in names:
            yield ArchiveSet(name, family, OFFICIAL[name], _ITALY_POWER_DEMAND if name == "ItalyPowerDemand" else {})


def discovered_archives() -> Iterator[ArchiveSet]:
    """Yield what lies on this machine in a form of the archives, under whatever name."""
    for path in archive_files():
        yield ArchiveSet(set_name(path))


def _end_channels(cases: RawCases) -> RawCases:
    """Continue a channel that ends before the others of its case with zeros (CharacterTrajectories)."""
    lengths = true_lengths(cases)
    padded = cases.copy()
    for i in cases_where(np.isnan, cases):
        case = padded[i].copy()
        for channel in case[:, : lengths[i]]:
            seen = np.flatnonzero(~np.isnan(channel))
            if seen.size:  # a channel without any value is a missing one
                channel[seen[-1] + 1 :] = 0.0
        padded[i] = case
    return padded


def _encode(train: Array, test: Array) -> tuple[Array, Array]:
    """Number the labels 0 .. K-1 by the sorted training labels."""
    try:
        # Text files hold labels as text, .npz files as numbers: "10" must not come before "2" in one of them only.
        train, test = train.astype(np.float64), test.astype(np.float64)
    except (ValueError, TypeError):
        train, test = train.astype(str), test.astype(str)
    known, codes = np.unique(train, return_inverse=True)
    unseen = sorted(set(test.tolist()) - set(known.tolist()))
    if unseen:
        raise InputError(f"The test part has labels that no training case has: {unseen[:5]}. Check the files.")
    return codes, np.searchsorted(known, test)
