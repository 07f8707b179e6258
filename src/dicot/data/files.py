"""Files of cases as Windows, whole or as a training and a test part."""

from dataclasses import replace
from pathlib import Path
from typing import Any

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


def read_parts(path: str | Path, **columns: Any) -> dict[str, Content]:
    """Read the cases of a file as they are: {"train": ..., "test": ...} if it holds a split, otherwise {"": ...}.

    A split is an .npz with X_train, or NAME_TRAIN.ts, .tsv or .arff (with NAME_TEST beside it). `columns` are fields of
    a Reading: layout, case, time, channels, label, group, ignore and header.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(
            f"{path} is a folder. Name a file of cases ({', '.join(known_suffixes('cases'))}) or a data set; "
            "recordings become windows by Windows.from_folder, or by --window."
        )
    return read_case_file(path, Reading.from_dict(columns))


def read_windows(path: str | Path, **options: Any) -> Windows:
    """Read all cases of one file that holds no split; `options` as for `read_split`."""
    split = read_split(path, **options)
    if split.test is not None:
        raise InputError(f"{path} holds a split into training and test cases. Read it with dicot.load.")
    return split.train


def read_split(path: str | Path, *, holdout: tuple[float, int] | None = None, **options: Any) -> Split:
    """Read a file as training data, with test data if it holds a split.

    `options` are those of `read_parts`, and the policies unequal, missing, scale and length of Windows.from_array. Of a
    file without test data `holdout` says the share and the seed by which `hold_out` will make some: the length of all
    cases is then that of the others by `unequal`.
    """
    policies = {k: value for k in Policies.__annotations__ if (value := options.pop(k, None)) is not None}
    parts = read_parts(path, **options)
    path = Path(path)
    name = path.stem.removesuffix("_TRAIN")
    with naming(path):
        if "test" in parts:
            return check_split(parts["train"], parts["test"], name=name, how="given by the file", **policies)
        (only,) = parts.values()
        if holdout is not None and "length" not in policies and policies.get("unequal", "error") != "error":
            only = _of_training_length(only, holdout, policies)
        windows = check_collection(only.X, only.y, group=only.group, name=path.stem, **policies)
    windows = windows if only.channels is None else replace(windows, channels=only.channels)
    return Split(windows, name=name, about=only.about)


def _of_training_length(content: Content, holdout: tuple[float, int], policies: dict[str, Any]) -> Content:
    """Bring all cases to the length that those get which are not held out."""
    n = len(content.X)
    y = None if content.y is None else check_labels(content.y, n, "y")
    group = None if content.group is None else check_groups(content.group, n, "group")
    test, _ = held_out(n, y, group, *holdout)
    length = target_length(true_lengths(content.X)[~test], policies["unequal"])
    return content._replace(X=brought_to(content.X, length, policies["unequal"], policies.get("missing", "error")))
