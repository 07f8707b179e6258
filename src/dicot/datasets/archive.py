"""The UCR and UEA archives: found on this machine, or fetched through aeon."""

import http.client
import os
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dicot.datasets.base import Card, Split
from dicot.datasets.names import UCR, UEA
from dicot.errors import InputError, MissingDataError, did_you_mean
from dicot.windows.cases import to_cases, true_lengths
from dicot.windows.files import load_npz, naming
from dicot.windows.policies import Array, Cases, Scale, cases_where
from dicot.windows.splits import check_split
from dicot.windows.tsfile import outline_ts, read_ts

_FAMILIES = {"ucr": UCR, "uea": UEA}
_CITATIONS = {
    "ucr": "Dau et al., The UCR time series archive, IEEE/CAA J. Autom. Sinica 6(6), 2019",
    "uea": "Bagnall et al., The UEA multivariate time series classification archive, 2018, arXiv:1811.00075",
}
_PARTS = ("X_train", "y_train", "X_test", "y_test")


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
    name = path.stem.removesuffix("_TRAIN")
    train, test = _read(path)
    try:
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
        )
    except InputError as error:
        raise InputError(f"Data set {name}: {error}") from error


def archive_cards() -> list[Card]:
    """A card for each archive set on this machine; reads no more than headers and training labels."""
    cards: dict[str, Card] = {}
    for path in _files():
        name = path.stem.removesuffix("_TRAIN")
        if name not in cards:
            card = _npz_card(path, name) if path.suffix == ".npz" else _ts_card(path, name)
            if card is not None:
                cards[name] = card
    return sorted(cards.values(), key=lambda card: card.name.lower())


def _cache() -> Path:
    return Path(os.environ.get("DICOT_CACHE") or Path.home() / ".cache" / "dicot").expanduser()


def _ts_folders() -> list[Path]:
    """Folders with NAME/NAME_TRAIN.ts: what aeon ships, then our own cache."""
    spec = find_spec("aeon")  # does not import aeon, which takes seconds
    shipped = [Path(p) / "datasets" / "data" for p in (spec.submodule_search_locations or ())] if spec else []
    return [*shipped, _cache()]


def _files() -> Iterator[Path]:
    """One file per set and place, the places in the order they are looked at."""
    root = os.environ.get("DICOT_DATA")
    if root:
        if not Path(root).is_dir():
            raise InputError(f"DICOT_DATA names {root}, which is no folder. Correct or unset the variable.")
        for family in _FAMILIES:
            yield from sorted((Path(root) / family).glob("*.npz"))
    for folder in _ts_folders():
        for path in sorted(folder.glob("*/*_TRAIN.ts")):
            # aeon also ships shortened copies (NAME_eq); only the set its folder is named after is the real one.
            if path.stem == f"{path.parent.name}_TRAIN" and _test_file(path).is_file():
                yield path


def _test_file(train: Path) -> Path:
    return train.with_name(train.name.replace("_TRAIN.ts", "_TEST.ts"))


def _find(name: str) -> Path | None:
    wanted = name.lower()
    return next((path for path in _files() if path.stem.removesuffix("_TRAIN").lower() == wanted), None)


def _archive_name(name: str) -> str:
    """The archive's spelling, or an error that suggests the closest name."""
    spelling = {known.lower(): known for known in (*UCR, *UEA)}
    if name.lower() not in spelling:
        here = {path.stem.removesuffix("_TRAIN") for path in _files()}
        raise InputError(
            f"Unknown data set {name!r}. {did_you_mean(name, here | set(spelling.values()) | {'synthetic'})}"
        )
    return spelling[name.lower()]


def _family(name: str) -> str | None:
    return next((family for family, names in _FAMILIES.items() if name in names), None)


def _download(name: str) -> Path:
    """NAME_TRAIN.ts in the cache, fetched by aeon; moved there only when complete."""
    cache = _cache()
    try:
        from aeon.datasets import load_classification

        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            load_classification(name, extract_path=fresh, load_equal_length=False, load_no_missing=False)
            train = Path(fresh) / name / f"{name}_TRAIN.ts"
            if not (train.is_file() and _test_file(train).is_file()):
                raise FileNotFoundError(f"aeon fetched no {name}_TRAIN.ts and {name}_TEST.ts")
            (cache / name).mkdir(exist_ok=True)
            for file in (_test_file(train), train):  # the training file last: its presence says that the set is there
                os.replace(file, cache / name / file.name)
    except (ImportError, OSError, ValueError, zipfile.BadZipFile, http.client.HTTPException) as error:
        raise MissingDataError(
            f"The data set {name} is not on this machine and could not be fetched ({error}). Either put "
            f"{_family(name)}/{name}.npz (X_train, y_train, X_test, y_test) into the folder that DICOT_DATA names, or "
            f"put {name}_TRAIN.ts and {name}_TEST.ts into {cache / name}, or with a network run: "
            f"pip install 'dicot[aeon]' && python -c \"import dicot.datasets as d; d.load('{name}')\""
        ) from error
    return cache / name / f"{name}_TRAIN.ts"


def _read(path: Path) -> tuple[tuple[Any, Array], tuple[Any, Array]]:
    if path.suffix == ".npz":
        with naming(path):
            held = load_npz(path, _PARTS)
            if len(held) < len(_PARTS):
                raise InputError(f"expected the arrays {', '.join(_PARTS)}; got {sorted(held)}.")
        return (held["X_train"], held["y_train"]), (held["X_test"], held["y_test"])
    parts = []
    for file_path in (path, _test_file(path)):
        cases, labels = read_ts(file_path)
        if labels is None or outline_ts(file_path).header.target:
            raise InputError(f"{file_path} holds no class labels; only classification sets can be loaded by name.")
        parts.append((cases, labels))
    return parts[0], parts[1]


def _end_channels(X: Any) -> Cases:
    """A channel that ends before the other channels of its case goes on with zeros (CharacterTrajectories)."""
    cases = to_cases(X)
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
        # .ts files hold labels as text, .npz files as numbers: "10" must not come before "2" in one of them only.
        train, test = train.astype(np.float64), test.astype(np.float64)
    except ValueError:
        train, test = train.astype(str), test.astype(str)
    known, codes = np.unique(train, return_inverse=True)
    unseen = sorted(set(test.tolist()) - set(known.tolist()))
    if unseen:
        raise InputError(f"The test part has labels that no training case has: {unseen[:5]}. Check the files.")
    return codes, np.searchsorted(known, test)


def _npz_card(path: Path, name: str) -> Card:
    """Shapes come from the headers of the arrays inside the zip; only the training labels are read."""
    with naming(path):
        with zipfile.ZipFile(path) as archive:
            lost = {f"{part}.npy" for part in _PARTS} - set(archive.namelist())
            if lost:
                raise InputError(f"expected the arrays {', '.join(_PARTS)}; {sorted(lost)} are missing.")
            shapes = [_npy_shape(archive, part) for part in ("X_train", "X_test")]
        n_classes = len(np.unique(load_npz(path, ("y_train",))["y_train"]))
    shape = shapes[0]
    n_channels = 1 if len(shape) == 2 else shape[1]
    return _card(name, shape[0], shapes[1][0], n_channels, shape[-1], n_classes)


def _npy_shape(archive: zipfile.ZipFile, part: str) -> tuple[int, ...]:
    form = np.lib.format
    with archive.open(f"{part}.npy") as member:
        version = form.read_magic(member)  # type: ignore[no-untyped-call]
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape: tuple[int, ...] = read(member)[0]  # type: ignore[no-untyped-call]
    return shape


def _ts_card(path: Path, name: str) -> Card | None:
    train, test = outline_ts(path), outline_ts(_test_file(path))
    if not train.header.classes:
        return None  # a regression problem
    return _card(name, train.n_cases, test.n_cases, train.n_channels, train.n_times, len(train.header.classes))


def _card(name: str, n_train: int, n_test: int, n_channels: int, n_times: int | None, n_classes: int) -> Card:
    family = _family(name)
    citation = _CITATIONS.get(family or "", "see the source")
    source = "https://timeseriesclassification.com"
    return Card(name, family, n_train, n_test, n_channels, n_times, n_classes, source, "see the source", citation)
