"""Files of the UCR and UEA archives: where they are looked for, and what each form holds."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError, UnlabelledDataError
from dicot.core.storage import cache_folder, user_folder
from dicot.data.naming import naming
from dicot.data.npyfile import load_npz, open_npz
from dicot.data.policies import Array
from dicot.data.textforms import outline_of_text, read_text

FAMILIES = ("ucr", "uea")
# ItalyPowerDemand.npz, the archive's official split with original values and labels, so that a plain install has
# something to try.
SHIPPED = Path(__file__).parent
ActualSizes = tuple[int, int, int, int | None, int]  # the fields of Sizes, as the files have them
_ARRAYS = ("X_train", "y_train", "X_test", "y_test")


FORMS = (".arff", ".ts", ".tsv")  # in the order in which the files of one set are tried


def _patterns() -> Iterator[tuple[Path, str]]:
    """Yield the folders that are searched, in this order, and what each holds: NAME.npz or NAME/NAME_TRAIN.*.

    DICOT_DATA may hold ucr/NAME.npz, ucr/NAME/NAME_TRAIN.* (uea likewise) or, as the archives are unpacked,
    NAME/NAME_TRAIN.*. Then come the set that we ship, those that aeon ships, and the cache.
    """
    user = user_folder()
    if user is not None:
        for family in FAMILIES:
            yield user / family, "npz"
            yield user / family, "pairs"
        yield user, "pairs"
    yield SHIPPED, "npz"
    spec = find_spec("aeon")  # does not import aeon, which takes seconds
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / "datasets" / "data", "pairs"
    yield cache_folder(), "pairs"


def archive_files() -> Iterator[Path]:
    """Yield one file per set and folder: NAME.npz or NAME_TRAIN.*."""
    for folder, kind in _patterns():
        if kind == "npz":
            yield from sorted(folder.glob("*.npz"))
        else:
            yield from (train for train in sorted(folder.glob("*/*_TRAIN.*")) if _is_pair(train))


def find_archive_file(name: str) -> Path | None:
    """Return the first file of the set spelled like this."""
    for folder, kind in _patterns():
        paths = [folder / f"{name}.npz"] if kind == "npz" else [folder / name / f"{name}_TRAIN{form}" for form in FORMS]
        for path in paths:
            if path.is_file() and (kind == "npz" or _is_pair(path)):
                return path
    return None


def _is_pair(train: Path) -> bool:
    # A folder may also hold shortened copies (NAME_eq) or single channels; the set is what the folder is named after.
    known = train.suffix in FORMS and train.stem == f"{train.parent.name}_TRAIN"
    return known and other_part(train).is_file()


def set_name(path: Path) -> str:
    """Return the name of the set that a file belongs to."""
    return path.stem.removesuffix("_TRAIN")


def other_part(train: Path) -> Path:
    """Return the path of the test part of NAME_TRAIN.*."""
    return train.with_name(f"{set_name(train)}_TEST{train.suffix}")


def read_archive(path: Path) -> tuple[tuple[Any, Array], tuple[Any, Array]]:
    """Read (cases, labels) of the training and the test part, as the files hold them."""
    if path.suffix == ".npz":
        with naming(path):
            arrays = load_npz(path, _ARRAYS)
            if len(arrays) < len(_ARRAYS):
                raise InputError(f"expected the arrays {', '.join(_ARRAYS)}; got {sorted(arrays)}.")
        return (arrays["X_train"], arrays["y_train"]), (arrays["X_test"], arrays["y_test"])
    parts = []
    for file_path in (path, other_part(path)):
        cases, labels = read_text(file_path)
        if labels is None or outline_of_text(file_path).header.target:
            raise _unlabelled(file_path)
        parts.append((cases, labels))
    return parts[0], parts[1]


def archive_sizes(path: Path) -> ActualSizes:
    """Read no more than headers and labels; a set without classes is an UnlabelledDataError."""
    if path.suffix == ".npz":
        return _npz_sizes(path)
    train, test = (outline_of_text(file) for file in (path, other_part(path)))
    if not train.header.classes:
        raise _unlabelled(path)
    return train.n_cases, test.n_cases, train.n_channels, train.n_times, len(train.header.classes)


def _unlabelled(path: Path) -> UnlabelledDataError:
    return UnlabelledDataError(f"{path} has no class labels; only classification sets can be loaded by name.")


def _npz_sizes(path: Path) -> ActualSizes:
    """Take the shapes from the headers of the arrays inside the zip; only the training labels are read."""
    with open_npz(path) as file:
        absent = sorted(set(_ARRAYS) - set(file.names))
        if absent:
            raise InputError(f"expected the arrays {', '.join(_ARRAYS)}; {absent} are missing.")
        train, test = (file.array_header(name).shape for name in ("X_train", "X_test"))
        if len(train) not in (2, 3) or len(test) != len(train):
            raise InputError(
                f"X_train and X_test must be (cases, channels, time) or (cases, time); got {train}, {test}."
            )
        n_classes = len(np.unique(file.read(["y_train"])["y_train"]))
    return train[0], test[0], 1 if len(train) == 2 else train[1], train[-1], n_classes
