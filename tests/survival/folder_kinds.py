"""Data sets by name: a prepared one, and a data folder in which one member is damaged."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import DicotError
from dicot.data import Split, Windows
from dicot.data.datasets import available, check, load
from dicot.data.datasets.base import Card
from dicot.data.datasets.large import CARD
from dicot.paper.preparation import PreparedParts, write_prepared
from tests.commands import dicot
from tests.survival.kind import Kind
from tests.survival.mutations import JSON, NPY, TEXT, ZIP
from tests.survival.verdicts import unsound

PARTS = [f"{letter}_{part}.npy" for letter in ("X", "y", "group") for part in ("train", "test")]


def _rng_windows(n: int, who: str) -> Windows:
    x = np.random.default_rng(n).normal(size=(n, 2, 10)).astype(np.float32)
    return Windows(x, np.arange(n) % 2, np.array([who] * n), "toy")


def _prepared(folder: Path) -> None:
    card = Card("toy", "large", 6, 4, 2, 10, 2, "a source", "free", "nobody", labels=("rest", "work"))
    parts = PreparedParts(_rng_windows(6, "ann"), _rng_windows(4, "bob"), ("rest", "work"), 5)
    write_prepared(folder / "data" / "large" / "toy", parts, card)


def _archive(folder: Path) -> None:
    """A data folder with a set in each form that it may hold."""
    _prepared(folder)
    data = folder / "data"
    x, y = _rng_windows(8, "").x, np.arange(8) % 2 + 1
    (data / "ucr").mkdir()
    np.savez(data / "ucr" / "Alpha.npz", X_train=x[:5], y_train=y[:5], X_test=x[5:], y_test=y[5:])
    head = "@problemName Beta\n@timeStamps false\n@univariate true\n@equalLength true\n@classLabel true 1 2\n@data\n"
    for part, rows in (("TRAIN", slice(0, 5)), ("TEST", slice(5, 8))):
        values = [",".join(f"{v:.3f}" for v in case[0]) for case in x[rows]]
        for name, lines, suffix, mark in (("Beta", head, "ts", ":"), ("Gamma", "", "tsv", "\t")):
            (data / name).mkdir(exist_ok=True)
            for text, label in zip(values, y[rows], strict=True):
                lines += f"{text}{mark}{label}\n" if mark == ":" else f"{label}\t{text.replace(',', mark)}\n"
            (data / name / f"{name}_{part}.{suffix}").write_text(lines)


def _use(folder: Path) -> None:
    os.environ["DICOT_DATA"], os.environ["DICOT_CACHE"] = str(folder / "data"), str(folder / "cache")


def attempt(do: Callable[[], Any]) -> Any:
    """The result, or the library's own error."""
    try:
        return do()
    except DicotError as error:
        return error


def _read_prepared(folder: Path) -> Any:
    _use(folder)
    scaled = attempt(lambda: load("toy", scale="dataset"))
    return attempt(available), attempt(lambda: load("toy")), scaled, attempt(lambda: check("toy"))


def judge_prepared(folder: Path, result: Any, sound: Any) -> str:
    listed, split, scaled, checked = result
    if isinstance(listed, DicotError):
        return f"one damaged set ends the list of all ({listed})"
    if isinstance(checked, DicotError):
        return _half_sound(split, scaled)
    same = all(_equal(mine, theirs) for mine, theirs in zip(_arrays(split), _arrays(sound[1]), strict=True))
    return "" if same else "`check` finds nothing wrong with other values"


def _half_sound(split: Any, scaled: Any) -> str:
    """`load` alone does not read the values, but what it gives must fit together."""
    for whole in (s for s in (split, scaled) if isinstance(s, Split)):
        for part in (whole.train, whole.test):
            if part is None or part.x.dtype != np.float32 or part.x.ndim != 3 or part.y is None or part.group is None:
                return f"a part is {part!r}"
            if not len(part.x) == len(part.y) == len(part.group) or part.y.dtype.kind not in "iu":
                return "values, labels and groups do not fit together"
            if part.group.dtype.kind not in "iuU" or part.y.min() < 0 or part.y.max() > 1:
                return f"labels from {part.y.min()} to {part.y.max()} where there are two classes"
    return "" if isinstance(scaled, DicotError) else unsound(scaled.train) or unsound(scaled.test)


def _arrays(split: Any) -> list[Any]:
    if not isinstance(split, Split) or split.test is None:
        return [None]
    return [getattr(part, name) for part in (split.train, split.test) for name in ("x", "y", "group")]


def _equal(one: Any, other: Any) -> bool:
    return (one is None and other is None) or np.array_equal(one, other)


NAMES = {"toy": "large/toy", "Alpha": "ucr/Alpha.npz", "Beta": "Beta", "Gamma": "Gamma"}


def _read_folder(folder: Path) -> Any:
    _use(folder)
    shown = attempt(lambda: dicot("data", "list"))
    return shown, {name: attempt(lambda name=name: load(name)) for name in NAMES}, _contents(folder)


def _contents(folder: Path) -> dict[str, list[bytes]]:
    def files(path: Path) -> list[bytes]:
        return [file.read_bytes() for file in ([path] if path.is_file() else sorted(path.iterdir()))]

    return {name: files(folder / "data" / place) for name, place in NAMES.items()}


def judge_folder(folder: Path, result: Any, sound: Any) -> str:
    shown, splits, contents = result
    if isinstance(shown, DicotError):
        return f"one damaged member ends the list of all ({shown})"
    for name, split in splits.items():
        if contents[name] == sound[2][name]:
            if f"\n{name} " not in f"\n{shown}":
                return f"{name} is sound and not listed"
            if isinstance(split, DicotError) or not all(map(_equal, _arrays(split), _arrays(sound[1][name]))):
                return f"{name} is sound and cannot be loaded as it was ({split})"
        elif isinstance(split, Split) and name != "toy" and (wrong := unsound(split.train) or unsound(split.test)):
            return f"{name}: {wrong}"
    return ""


KINDS = [
    Kind(
        "prepared",
        _prepared,
        {f"data/large/toy/{CARD}": JSON, **{f"data/large/toy/{name}": NPY for name in PARTS}},
        _read_prepared,
        judge_prepared,
        heavy=True,
    ),
    Kind(
        "data-folder",
        _archive,
        {
            f"data/large/toy/{CARD}": JSON,
            "data/ucr/Alpha.npz": ZIP,
            **{f"data/Beta/Beta_{part}.ts": TEXT for part in ("TRAIN", "TEST")},
            **{f"data/Gamma/Gamma_{part}.tsv": TEXT for part in ("TRAIN", "TEST")},
        },
        _read_folder,
        judge_folder,
        heavy=True,
    ),
]
