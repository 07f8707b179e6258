"""Split: a data set as a training and a test part, prepared by the same rules; files of cases as one."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, WindowLengthWarning, listed, naming
from dicot.core.settings import how_to_prepare
from dicot.data.cases import (
    Array,
    Policies,
    RawCases,
    Scale,
    name_cases,
    target_length,
    to_cases,
    true_lengths,
)
from dicot.data.collection import Windows, check_collection, keep_identity, segments_under
from dicot.data.conversion import at_length, look
from dicot.data.labels import as_text, check_groups, check_labels, labelled, name_of_groups
from dicot.data.readers import Content, known_suffixes, read_case_file
from dicot.data.reading import Reading


@dataclass(frozen=True, eq=False)
class Split:
    """Training cases and, where there are any, test cases; labels and groups that one part has as text are text."""

    train: Windows
    test: Windows | None = None
    family: str | None = None
    name: str = ""
    how: str = ""  # the parts came about, in words
    about: str = ""  # how a table file was read, in words

    def __post_init__(self) -> None:
        parts = {"train": self.train, **({} if self.test is None else {"test": self.test})}
        for what in ("y", "group"):
            given = [values for part in parts.values() if (values := getattr(part, what)) is not None]
            if len({values.dtype.kind == "U" for values in given}) > 1:
                parts = {name: replace(part, **{what: as_text(getattr(part, what))}) for name, part in parts.items()}
        for name, part in parts.items():
            object.__setattr__(self, name, part)


def check_split(
    train: tuple[Any, ...],
    test: tuple[Any, ...] | None,
    *,
    name: str = "",
    family: str | None = None,
    how: str = "given with the data",
    **policies: Unpack[Policies],
) -> Split:
    """Return (X, y) or (X, y, group) of each part as a Split of one length; `how` says where the parts come from.

    The length is that of the training part by `unequal`, and test cases are brought to it. scale="dataset" means the
    training part's statistics.
    """
    parts = [train] if test is None else [train, test]
    cases = [to_cases(x) for x, *_ in parts]
    scale = policies.pop("scale", None)
    unequal = policies.get("unequal", "error")
    # Under "error" each part is checked on its own first, which can name the cases.
    if policies.get("length") is None and unequal != "error":
        policies["length"] = length = target_length(true_lengths(cases[0]), unequal)
        cases[1:] = [brought_to(c, length, unequal, policies.get("missing", "error")) for c in cases[1:]]
    checked = [
        check_collection(c, y, group=group[0] if group else None, name=name, **policies)
        for c, (_, y, *group) in zip(cases, parts, strict=True)
    ]
    if (first := checked[0].shape[1:]) != (last := checked[-1].shape[1:]):
        raise InputError(
            f"Training and test cases must have one shape (channels, time); got {first} and {last}. "
            f"Pad, crop or resample them: {how_to_prepare('unequal', 'pad')}."
        )
    if scale is not None:
        scale = Scale.fit(checked[0].x) if scale == "dataset" else scale
        checked = [check_collection(w, scale=scale) for w in checked]
    return Split(checked[0], None if test is None else checked[1], family, name, "" if test is None else how)


def brought_to(cases: RawCases, length: int, unequal: str, missing: str = "error") -> Array:
    """Give cases the length that training cases have; say how many lose their end or get zeros by that."""
    seen = look(cases, missing=missing)
    other = seen.lengths > length if unequal == "pad" else seen.lengths < length
    if unequal != "resample" and other.any():
        which = name_cases(np.flatnonzero(other), "Test case", "Test cases")
        where, so = ("above", "the end is cut off") if unequal == "pad" else ("below", "zeros follow")
        warnings.warn(
            f"{which}: {where} the {length} time steps that training cases get, so {so}. "
            'unequal="resample" keeps a whole case.',
            WindowLengthWarning,
            stacklevel=3,
        )
    return at_length(seen, unequal, length).whole()


def with_policies(split: Split, **policies: Unpack[Policies]) -> Split:
    """Apply policies to a split; without any it is returned unchanged."""
    if not policies:
        return split
    segments = segments_under(split.train, policies.get("scale"), policies.get("length"))
    train, test = (None if part is None else (part.x, part.y, part.group) for part in (split.train, split.test))
    assert train is not None
    done = check_split(train, test, name=split.name, family=split.family, how=split.how, **policies)
    unequal = policies.get("unequal", "error")
    known = replace(keep_identity(split.train, done.train, unequal), segments=segments)
    tested = None if split.test is None or done.test is None else keep_identity(split.test, done.test, unequal)
    return replace(done, train=known, test=tested)


def shared_groups(split: Split) -> list[str]:
    """List the groups with cases in both parts: a test case may then look like training cases of its own group."""
    if split.test is None or split.train.group is None or split.test.group is None:
        return []
    both: list[str] = np.intersect1d(as_text(split.train.group), as_text(split.test.group)).tolist()
    return both


def hold_out(windows: Windows, share: float, seed: int = 0, *, column: str | None = None) -> Split:
    """Turn part of the cases into test cases: whole groups where there are groups, otherwise a share of each class.

    Cases without a label cannot be scored: alone they stay in training, and so do groups that have no others. `column`
    is what groups are called.
    """
    unit = name_of_groups(windows.group, windows.recording, column)
    test, how = held_out(len(windows), windows.y, windows.group, share, seed, unit)
    return Split(windows.subset(~test), windows.subset(test), name=windows.name, how=how)


def held_out(
    n: int, y: Array | None, group: Array | None, share: float, seed: int = 0, unit: str = "group"
) -> tuple[NDArray[np.bool_], str]:
    """Say which of n cases `hold_out` makes test cases (n,), and how they were drawn; a group is called a `unit`."""
    if not 0 < share < 1:
        raise InputError(f"The share of cases to hold out must lie between 0 and 1; got {share}.")
    rng = np.random.default_rng(seed)
    known = np.ones(n, bool) if y is None else labelled(y)
    if not known.any():
        raise InputError("None of the cases has a label, so none can be held out for scoring.")
    if group is not None:
        groups = np.unique(group[known])
        chosen = np.sort(_some(groups, share, rng))
        test: NDArray[np.bool_] = np.isin(group, chosen)
        names = listed(list(map(str, chosen)))
        how = f"{len(chosen)} of {len(groups)} {unit}s held out, drawn once with seed {seed}: {names}"
    else:
        kinds = np.zeros(n, int) if y is None else y
        drawn = [_some(np.flatnonzero(known & (kinds == kind)), share, rng) for kind in np.unique(kinds[known])]
        test = np.isin(np.arange(n), np.concatenate(drawn))
        of = "" if y is None else " of each class"
        how = f"{share * 100:g} % of the cases{of} held out, drawn once with seed {seed}: the data name no groups"
    if test.all() or not test.any():
        raise InputError("There are too few cases or groups to hold some out. Give a test part of your own.")
    return test, how


def validation_rows(y: Array, group: Array | None, share: float, fewest: int, seed: int) -> NDArray[np.bool_]:
    """Say which labelled cases (N,) to hold out while a classifier is trained on the others; perhaps none.

    A share of each class that has `fewest` cases or more, at least one; smaller classes are trained on as a whole.
    Where there are groups, whole ones until that many cases are held out, except those without which a class would
    have too few cases left.
    """
    rng = np.random.default_rng([seed, len(y)])
    held = np.zeros(len(y), bool)
    classes, counts = np.unique(y, return_counts=True)
    sizes = {kind: max(1, round(share * count)) for kind, count in zip(classes, counts, strict=True) if count >= fewest}
    if group is None:
        for kind, size in sizes.items():
            held[rng.choice(np.flatnonzero(y == kind), size, replace=False)] = True
        return held
    for one in rng.permutation(np.unique(group)):
        more = held | (group == one)
        left = [np.count_nonzero((y == kind) & ~more) for kind in classes]
        enough = all(now >= min(count, fewest - 1) for now, count in zip(left, counts, strict=True))
        if enough and np.count_nonzero(more) <= 2 * sum(sizes.values()) and not held.sum() >= sum(sizes.values()):
            held = more
    return held


def _some(items: Array, share: float, rng: np.random.Generator) -> Array:
    """Draw a share of the items, at least one where there are two or more."""
    count = min(max(1, round(share * len(items))), max(0, len(items) - 1))
    return rng.choice(items, count, replace=False) if count else items[:0]


def split_groups(windows: Windows, test_groups: Iterable[Any]) -> tuple[Windows, Windows]:
    """Split into (train, test): the windows of `test_groups` are the test part, all others the training part."""
    known, wanted = set() if windows.group is None else set(windows.group.tolist()), set(test_groups)
    if not wanted or not wanted < known:
        raise InputError(f"test_groups must name some, not all, of the groups {sorted(known)}; got {list(wanted)}.")
    assert windows.group is not None
    in_test = np.isin(windows.group, list(wanted))
    return windows.subset(~in_test), windows.subset(in_test)


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
