"""The UCR and UEA archives by name: found on this machine, or fetched through aeon."""

import http.client
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dicot.data.cases import to_cases, true_lengths
from dicot.data.policies import Array, Cases, Scale, cases_where
from dicot.data.splits import check_split
from dicot.datasets.archive_files import archive_files, archive_sizes, other_part, read_archive, set_name
from dicot.datasets.base import Card, Held, Sizes, Split, differences
from dicot.datasets.names import OFFICIAL, UCR, UEA
from dicot.datasets.preparers import PREPARERS
from dicot.datasets.shipped import ABOUT
from dicot.datasets.standins import STANDINS
from dicot.errors import InputError, MissingDataError, did_you_mean
from dicot.storage import cache_folder

SOURCE = "https://timeseriesclassification.com"
_NAMES = {"ucr": UCR, "uea": UEA}
_SPELLING = {name.lower(): name for name in (*UCR, *UEA)}
_CITATIONS = {
    "ucr": "Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
    "uea": "Bagnall et al., The UEA multivariate time series classification archive, 2018, arXiv:1811.00075",
}


def load_archive(
    name: str,
    *,
    unequal: str = "pad",
    missing: str = "error",
    scale: str | Scale | None = None,
    length: int | None = None,
) -> Split:
    """The official split in the archive setting: zeros at the end up to the longest case, original values.

    Labels become 0 .. K-1 in the order of the sorted training labels (as numbers where all of them are numbers).
    """
    path = _find(name) or _download(_archive_name(name))
    name = set_name(path)
    parts = read_archive(path)
    try:
        train, test = ((to_cases(X), y) for X, y in parts)
        _check_sizes(name, train, test)
        y_train, y_test = _encode(train[1], test[1])
        return check_split(
            (_end_channels(train[0]), y_train),
            (_end_channels(test[0]), y_test),
            unequal=unequal,
            missing=missing,
            scale=scale,
            length=length,
            name=name,
            family=_family(name),
            how="given by the archive",
        )
    except InputError as error:
        raise InputError(f"Data set {name}: {error}") from error


def archive_cards() -> Held:
    """A card for each archive set on this machine; reads no more than headers and training labels."""
    cards: dict[str, Card] = {}
    damaged: dict[str, str] = {}
    for path in archive_files():
        name = set_name(path)
        if name in cards or name in damaged:  # `load` takes the first as well
            continue
        try:
            card = _card(path, name)
        except InputError as error:
            damaged[name] = str(error)
        else:
            cards.update({} if card is None else {name: card})
    return Held(sorted(cards.values(), key=lambda card: card.name.lower()), damaged)


def is_archive_set(name: str) -> bool:
    """Whether an archive has a set of this name, or a file of it is here."""
    return _family(_SPELLING.get(name.lower(), "")) is not None or _find(name) is not None


def archive_card(name: str) -> Card | None:
    """The card of one set, where it is on this machine."""
    path = _find(name)
    return None if path is None else _card(path, set_name(path))


def _card(path: Path, name: str) -> Card | None:
    sizes = archive_sizes(path)
    if sizes is None:
        return None
    family = _family(name)
    about: dict[str, Any] = {
        "source": SOURCE,
        "licence": "see the source",
        "citation": _CITATIONS.get(family or "", "see the source"),
    }
    return Card(name, family, *sizes, **{**about, **ABOUT.get(name, {})})


def _find(name: str) -> Path | None:
    return next((path for path in archive_files() if set_name(path).lower() == name.lower()), None)


def _archive_name(name: str) -> str:
    """The archive's spelling, or an error that suggests the closest name."""
    if name.lower() not in _SPELLING:
        here = {set_name(path) for path in archive_files()}
        known = here | {"synthetic", *_SPELLING.values(), *PREPARERS, *STANDINS}
        raise InputError(
            f"Unknown data set {name!r}. {did_you_mean(name, known)} `dicot data list` names all of them; "
            "a file is given by its path, such as mine.npz."
        )
    return _SPELLING[name.lower()]


def _family(name: str) -> str | None:
    return next((family for family, names in _NAMES.items() if name in names), None)


def _download(name: str) -> Path:
    """NAME_TRAIN.ts in the cache, fetched by aeon; moved there only when complete."""
    cache = cache_folder()
    try:
        from aeon.datasets import load_classification

        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            load_classification(name, extract_path=fresh, load_equal_length=False, load_no_missing=False)
            train = Path(fresh) / name / f"{name}_TRAIN.ts"
            if not (train.is_file() and other_part(train).is_file()):
                raise FileNotFoundError(f"aeon fetched no {name}_TRAIN.ts and {name}_TEST.ts")
            (cache / name).mkdir(exist_ok=True)
            for file in (other_part(train), train):  # the training file last: its presence says that the set is there
                os.replace(file, cache / name / file.name)
    except (ImportError, OSError, ValueError, zipfile.BadZipFile, http.client.HTTPException) as error:
        raise missing_archive(name, f" and could not be fetched ({error})") from error
    return cache / name / f"{name}_TRAIN.ts"


def missing_archive(name: str, why: str = "") -> MissingDataError:
    """The error for a set that is not here: what to put where, which commands follow."""
    name = _archive_name(name)
    return MissingDataError(
        f"The data set {name} is not on this machine{why}. Either put {_family(name)}/{name}.npz (X_train, y_train, "
        f"X_test, y_test), or {name}/{name}_TRAIN and {name}_TEST as .ts, .tsv or .arff from {SOURCE}, into the folder "
        f"that DICOT_DATA names, or with a network run: pip install 'dicot[aeon]' && "
        f"python -c \"import dicot.datasets as d; d.load('{name}')\". To check the result: dicot data check {name}"
    )


def _check_sizes(name: str, train: tuple[Cases, Array], test: tuple[Cases, Array]) -> None:
    """A file that has not the archive's sizes is truncated or another data set."""
    official = OFFICIAL.get(name)
    if official is None:
        return
    longest = max(int(true_lengths(cases).max()) for cases, _ in (train, test))
    found = Sizes(len(train[0]), len(test[0]), train[0][0].shape[0], longest, len(np.unique(train[1])))
    if wrong := differences(found, official):
        raise InputError(
            f"the files hold {', '.join(wrong)}. Fetch them again, or rename them if this is not the archive's set."
        )


def _end_channels(cases: Cases) -> Cases:
    """A channel that ends before the other channels of its case goes on with zeros (CharacterTrajectories)."""
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
    """Labels as 0 .. K-1 by the sorted training labels."""
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
