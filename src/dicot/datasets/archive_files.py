"""Files of the UCR and UEA archives: where they are looked for, and what each form holds."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.data.arfffile import outline_arff, read_arff
from dicot.data.datalines import Outline
from dicot.data.naming import naming
from dicot.data.npyfile import load_npz, open_npz
from dicot.data.policies import Array
from dicot.data.tsfile import outline_ts, read_ts
from dicot.data.tsvfile import outline_tsv, read_tsv
from dicot.datasets import shipped
from dicot.datasets.folders import user_folder
from dicot.errors import InputError
from dicot.storage import cache_folder

FAMILIES = ("ucr", "uea")
Found = tuple[int, int, int, int | None, int]  # the fields of Sizes, as the files have them
_ARRAYS = ("X_train", "y_train", "X_test", "y_test")


class Form(NamedTuple):
    """How a text form is read, and what can be told without reading its values."""

    read: Callable[[Path], tuple[Any, Array | None]]
    outline: Callable[[Path], Outline]


FORMS = {".ts": Form(read_ts, outline_ts), ".tsv": Form(read_tsv, outline_tsv), ".arff": Form(read_arff, outline_arff)}


def archive_files() -> Iterator[Path]:
    """One file per set and place, the places in the order they are looked at: NAME.npz or NAME_TRAIN.*.

    DICOT_DATA may hold ucr/NAME.npz, ucr/NAME/NAME_TRAIN.* (uea likewise) or, as the archives are unpacked,
    NAME/NAME_TRAIN.*. Then come the set that we bring along, those that aeon brings along, and the cache.
    """
    user = user_folder()
    if user is not None:
        for family in FAMILIES:
            yield from sorted((user / family).glob("*.npz"))
            yield from _pairs(user / family)
        yield from _pairs(user)
    yield from sorted(shipped.FOLDER.glob("*.npz"))
    spec = find_spec("aeon")  # does not import aeon, which takes seconds
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from _pairs(Path(folder) / "datasets" / "data")
    yield from _pairs(cache_folder())


def _pairs(folder: Path) -> Iterator[Path]:
    # A folder may also hold shortened copies (NAME_eq) or single channels; the set is what the folder is named after.
    for train in sorted(folder.glob("*/*_TRAIN.*")):
        known = train.suffix in FORMS and train.stem == f"{train.parent.name}_TRAIN"
        if known and other_part(train).is_file():
            yield train


def set_name(path: Path) -> str:
    return path.stem.removesuffix("_TRAIN")


def other_part(train: Path) -> Path:
    """What belongs to NAME_TRAIN.*."""
    return train.with_name(f"{set_name(train)}_TEST{train.suffix}")


def read_archive(path: Path) -> tuple[tuple[Any, Array], tuple[Any, Array]]:
    """(cases, labels) of the training and the test part, as the files hold them."""
    if path.suffix == ".npz":
        with naming(path):
            held = load_npz(path, _ARRAYS)
            if len(held) < len(_ARRAYS):
                raise InputError(f"expected the arrays {', '.join(_ARRAYS)}; got {sorted(held)}.")
        return (held["X_train"], held["y_train"]), (held["X_test"], held["y_test"])
    parts = []
    for file_path in (path, other_part(path)):
        cases, labels = FORMS[path.suffix].read(file_path)
        if labels is None or FORMS[path.suffix].outline(file_path).header.target:
            raise InputError(f"{file_path} holds no class labels; only classification sets can be loaded by name.")
        parts.append((cases, labels))
    return parts[0], parts[1]


def archive_sizes(path: Path) -> Found | None:
    """Reads no more than headers and labels; None for a set without classes."""
    if path.suffix == ".npz":
        return _npz_sizes(path)
    train, test = (FORMS[path.suffix].outline(file) for file in (path, other_part(path)))
    if not train.header.classes:
        return None  # a regression problem
    return train.n_cases, test.n_cases, train.n_channels, train.n_times, len(train.header.classes)


def _npz_sizes(path: Path) -> Found:
    """Shapes come from the headers of the arrays inside the zip; only the training labels are read."""
    with open_npz(path) as file:
        lost = sorted(set(_ARRAYS) - set(file.names))
        if lost:
            raise InputError(f"expected the arrays {', '.join(_ARRAYS)}; {lost} are missing.")
        train, test = (file.form(name).shape for name in ("X_train", "X_test"))
        if len(train) not in (2, 3) or len(test) != len(train):
            raise InputError(
                f"X_train and X_test must be (cases, channels, time) or (cases, time); got {train}, {test}."
            )
        n_classes = len(np.unique(file.read(["y_train"])["y_train"]))
    return train[0], test[0], 1 if len(train) == 2 else train[1], train[-1], n_classes
