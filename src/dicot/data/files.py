"""Files of cases as Windows, whole or as a training and a test part."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dicot.core.errors import InputError
from dicot.data.casefiles import Content
from dicot.data.cases import true_lengths
from dicot.data.collection import Windows, check_collection
from dicot.data.labels import check_groups, check_labels
from dicot.data.naming import naming
from dicot.data.policies import Policies, target_length
from dicot.data.readers import known_suffixes, read_case_file
from dicot.data.reading import Reading
from dicot.data.splits import Split, brought_to, check_split, held_out


class Columns(TypedDict, total=False):
    """How to find the cases in a file: fields of a Reading."""

    layout: str
    case: str | None
    time: str | None
    channels: Sequence[str] | None
    label: str | None
    group: str | None
    ignore: Sequence[str] | None
    header: bool | None


class ReadOptions(Columns, Policies, total=False):
    """How to read a file: where its cases are, and the policies of Windows.from_array."""


def read_parts(path: str | Path, **columns: Unpack[Columns]) -> dict[str, Content]:
    """Read the cases of a file as they are: {"train": ..., "test": ...} if it holds a split, otherwise {"": ...}.

    A split is an .npz with X_train, or NAME_TRAIN.ts, .tsv or .arff (with NAME_TEST beside it).
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(
            f"{path} is a folder; data is one file ({', '.join(known_suffixes('cases'))}) or a data set by name. Name "
            "the file; a folder of recordings becomes windows by Windows.from_folder, and on the command line by "
            "--window or a dicot.toml (`dicot inspect FOLDER --write`)."
        )
    return read_case_file(path, Reading.from_dict(columns))


def read_windows(path: str | Path, **options: Unpack[ReadOptions]) -> Windows:
    """Read all cases of one file that holds no split."""
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    if len(parts) > 1:
        raise InputError(f"{path} holds a split into training and test cases. Read it with read_split.")
    (only,) = parts.values()
    return _checked(Path(path), only, policies)


def read_split(path: str | Path, *, holdout: tuple[float, int] | None = None, **options: Unpack[ReadOptions]) -> Split:
    """Read a file as training data, with test data if it holds a split.

    Of a file without test data `holdout` says the share and the seed by which `hold_out` will make some: the length of
    all cases is then that of the others by `unequal`.
    """
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    name = Path(path).stem.removesuffix("_TRAIN")
    if "test" not in parts:
        (only,) = parts.values()
        if holdout is not None and "length" not in policies and policies.get("unequal", "error") != "error":
            with naming(Path(path)):
                only = _of_training_length(only, holdout, policies)
        return Split(_checked(Path(path), only, policies), name=name, about=only.about)
    with naming(Path(path)):
        return check_split(parts["train"], parts["test"], name=name, how="given by the file", **policies)


def _of_training_length(content: Content, holdout: tuple[float, int], policies: dict[str, Any]) -> Content:
    """Bring all cases to the length that those get which are not held out."""
    n = len(content.X)
    y = None if content.y is None else check_labels(content.y, n, "y")
    group = None if content.group is None else check_groups(content.group, n, "group")
    test, _ = held_out(n, y, group, *holdout)
    length = target_length(true_lengths(content.X)[~test], policies["unequal"])
    return content._replace(X=brought_to(content.X, length, policies["unequal"], policies.get("missing", "error")))


def _checked(path: Path, content: Content, policies: dict[str, Any]) -> Windows:
    with naming(path):
        windows = check_collection(content.X, content.y, group=content.group, name=path.stem, **policies)
    return windows if content.channels is None else replace(windows, channels=content.channels)


def _divide(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the options that say where the cases are from the policies; None leaves a policy at its default."""
    policies = {k: options.pop(k) for k in Policies.__annotations__ if k in options}
    if unknown := sorted(options.keys() - Columns.__annotations__.keys()):
        raise TypeError(f"Unknown options for reading a file: {', '.join(unknown)}")
    return options, {k: v for k, v in policies.items() if v is not None}
