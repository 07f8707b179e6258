"""The UCR and UEA archives by name: from files on this machine, or fetched through aeon."""

import http.client
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Unpack, final

import numpy as np

from dicot.core.errors import InputError, MissingDataError, UnlabelledDataError, how_to_install
from dicot.core.storage import cache_folder, user_folder
from dicot.data import Split
from dicot.data.cases import Array, Policies, RawCases, to_cases, true_lengths
from dicot.data.datasets.base import Card, DataSet, Sizes, differences, pick_channels
from dicot.data.datasets.names import OFFICIAL, UCR, UEA
from dicot.data.readers import read_case_file
from dicot.data.reading import Reading
from dicot.data.splits import check_split

SOURCE = "https://timeseriesclassification.com"
# ItalyPowerDemand.npz, the archive's official split with original values and labels, so that a plain install has
# something to try.
SHIPPED = Path(__file__).parent
FORMS = (".arff", ".ts", ".tsv")  # in the order in which the files of a set are tried
_CITATIONS = {
    "ucr": "Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
    "uea": "Bagnall et al., The UEA multivariate time series classification archive, 2018, arXiv:1811.00075",
}
_ITALY_POWER_DEMAND = {
    "source": f"{SOURCE}/description.php?Dataset=ItalyPowerDemand",
    "licence": "none stated; the archive asks to be cited",
    "citation": "Keogh et al., Intelligent icons: integrating lite-weight data mining and visualization into GUI "
    f"operating systems, ICDM 2006; {_CITATIONS['ucr']}",
}
_INTERPOLATE: Mapping[str, str] = {"missing": "interpolate"}
Part = tuple[RawCases, Array]  # cases and their labels


@final
@dataclass(frozen=True)
class ArchiveSet(DataSet):
    """A UCR or UEA set, or a user's own in one of the archives' forms: from files, or through aeon."""

    name: str
    family: str | None = None  # None: not in the archives, so only files of this machine have it
    sizes: Sizes | None = None  # the published ones; other files are refused
    about: Mapping[str, str] = field(default_factory=dict)  # source, licence and citation where they are not the usual
    benchmark_policies = _INTERPOLATE

    def is_here(self) -> bool:
        return _find(self.name) is not None

    def card(self) -> Card:
        """Return the published sizes; a file is read only where they are not known."""
        path = _find(self.name)
        if path is None:
            raise self._missing()
        known = self.sizes is not None and self.sizes.n_train is not None
        sizes = self.sizes if known else _sizes(*_read(path))
        citation = _CITATIONS.get(self.family or "", "see the source")
        about = {"source": SOURCE, "licence": "see the source", "citation": citation, **self.about}
        return Card(self.name, self.family, *sizes, **about)  # type: ignore[misc,arg-type]

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return the official split in the archive setting: zeros at the end up to the longest case, original values.

        As in the authors' code that is the longest of both parts (D-52); an `unequal` that is asked for goes by the
        training part. Labels become 0 .. K-1 in the order of the sorted training labels (as numbers where all of them
        are numbers).
        """
        train, test = _read(_find(self.name) or self._download())
        try:
            longest = max(int(true_lengths(cases).max()) for cases, _ in (train, test))
            actual = _sizes(train, test)._replace(n_times=longest)
            if self.sizes is not None and (wrong := differences(actual, self.sizes)):
                raise InputError(
                    f"the files hold {', '.join(wrong)}. Fetch them again, or rename them if this is not the "
                    "archive's set."
                )
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
            raise type(error)(f"Data set {self.name}: {error}") from error
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
                (cache / self.name).mkdir(exist_ok=True)
                # The training file last: its presence says that the set is there.
                for file in (_other_part(train), train):
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
            f"folder that DICOT_DATA names, or have it fetched over the network. {how_to_install('aeon')} && "
            f"python -c \"import dicot; dicot.load('{name}')\". To check the result: dicot list datasets {name} --check"
        )


def archive_sets() -> Iterator[ArchiveSet]:
    """Yield the 158 sets of both archives."""
    for family, names in (("ucr", UCR), ("uea", UEA)):
        for name in names:
            yield ArchiveSet(name, family, OFFICIAL[name], _ITALY_POWER_DEMAND if name == "ItalyPowerDemand" else {})


def discovered_archives() -> Iterator[ArchiveSet]:
    """Yield what lies on this machine in a form of the archives, under whatever name."""
    for folder, arrays in _folders():
        for path in sorted(folder.glob("*.npz" if arrays else "*/*_TRAIN.*")):
            if arrays or _is_pair(path):
                yield ArchiveSet(path.stem.removesuffix("_TRAIN"))


def _folders() -> Iterator[tuple[Path, bool]]:
    """Yield the folders that are searched, in this order, and whether each holds NAME.npz, or else NAME/NAME_TRAIN.*.

    DICOT_DATA may hold ucr/NAME.npz, ucr/NAME/NAME_TRAIN.* (uea likewise) or, as the archives are unpacked,
    NAME/NAME_TRAIN.*. Then come the set that we ship, those that aeon ships, and the cache.
    """
    user = user_folder()
    if user is not None:
        yield from ((user / family, arrays) for family in ("ucr", "uea") for arrays in (True, False))
        yield user, False
    yield SHIPPED, True
    spec = find_spec("aeon")  # does not import aeon, which takes seconds
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / "datasets" / "data", False
    yield cache_folder(), False


def _find(name: str) -> Path | None:
    """Return the first file of the set spelled like this."""
    for folder, arrays in _folders():
        paths = [folder / f"{name}.npz"] if arrays else [folder / name / f"{name}_TRAIN{form}" for form in FORMS]
        for path in paths:
            if path.is_file() and (arrays or _is_pair(path)):
                return path
    return None


def _is_pair(train: Path) -> bool:
    # A folder may also hold shortened copies (NAME_eq) or single channels; the set is what the folder is named after.
    return train.suffix in FORMS and train.stem == f"{train.parent.name}_TRAIN" and _other_part(train).is_file()


def _other_part(train: Path) -> Path:
    return train.with_name(f"{train.stem.removesuffix('_TRAIN')}_TEST{train.suffix}")


def _read(path: Path) -> tuple[Part, Part]:
    """Read cases and labels of the training and the test part, as the files hold them."""
    found = read_case_file(path, Reading())
    parts = [(to_cases(found[part].X), found[part].y) for part in ("train", "test") if part in found]
    (train, y_train), (test, y_test) = parts if len(parts) == 2 else [([], None)] * 2
    if y_train is None or y_test is None:
        raise UnlabelledDataError(f"{path} has no test part or no class labels, which a set by name must have.")
    return (train, y_train), (test, y_test)


def _sizes(train: Part, test: Part) -> Sizes:
    lengths = np.concatenate([true_lengths(cases) for cases, _ in (train, test)])
    n_times = int(lengths[0]) if len(set(lengths)) == 1 else None
    n_classes = len(np.unique(_numbers(train[1])))
    return Sizes(len(train[0]), len(test[0]), train[0][0].shape[0], n_times, n_classes)


def _end_channels(cases: RawCases) -> RawCases:
    """Continue a channel that ends before the others of its case with zeros (CharacterTrajectories)."""
    lengths = true_lengths(cases)
    padded = cases.copy()
    for i in (i for i, case in enumerate(cases) if np.isnan(case).any()):
        case = padded[i].copy()
        for channel in case[:, : lengths[i]]:
            seen = np.flatnonzero(~np.isnan(channel))
            if seen.size:  # a channel without any value is a missing one
                channel[seen[-1] + 1 :] = 0.0
        padded[i] = case
    return padded


def _numbers(labels: Array) -> Array:
    """Return labels as numbers where all of them are: "10" must not come before "2" in one form of a set only."""
    try:
        numbers = labels.astype(np.float64)
    except (ValueError, TypeError):
        return labels.astype(str)
    if (numbers % 1 != 0).any():
        raise UnlabelledDataError("its labels are numbers to predict, not classes.")
    return numbers


def _encode(train: Array, test: Array) -> tuple[Array, Array]:
    """Number the labels 0 .. K-1 by the sorted training labels."""
    both = _numbers(np.concatenate([train, test]))
    known, codes = np.unique(both[: len(train)], return_inverse=True)
    if unseen := sorted(set(both[len(train) :].tolist()) - set(known.tolist())):
        raise InputError(f"The test part has labels that no training case has: {unseen[:5]}. Check the files.")
    return codes, np.searchsorted(known, both[len(train) :])
