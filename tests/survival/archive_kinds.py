"""The archives' text forms: .ts of one or several channels, of unequal length or with gaps, .tsv and .arff."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dicot.data import Windows
from dicot.data.files import read_windows
from tests.survival import reference
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import TEXT
from tests.survival.reference import Cases
from tests.survival.verdicts import LARGEST_FLOAT32, windows_are

LABELS = ("1", "2", "10")


def _values(n_channels: int, lengths: list[int]) -> list[list[list[str]]]:
    rng = np.random.default_rng(len(lengths) + n_channels)
    return [[[f"{v:.3f}" for v in rng.normal(size=n)] for _ in range(n_channels)] for n in lengths]


def _ts(folder: Path, n_channels: int, lengths: list[int], missing: bool = False) -> None:
    cases = _values(n_channels, lengths)
    if missing:
        cases[1][0][3] = cases[2][0][0] = "?"
    head = ["# a comment", "@problemName Toy", "@timeStamps false", f"@missing {str(missing).lower()}"]
    head += [f"@univariate {str(n_channels == 1).lower()}", *([f"@dimension {n_channels}"] if n_channels > 1 else [])]
    equal = len(set(lengths)) == 1
    head += [f"@equalLength {str(equal).lower()}", *([f"@seriesLength {lengths[0]}"] if equal else [])]
    head += [f"@classLabel true {' '.join(LABELS)}", "@data"]
    body = [":".join([*map(",".join, case), LABELS[i % 3]]) for i, case in enumerate(cases)]
    (folder / "a.ts").write_text("\n".join(head + body) + "\n")


def _tsv(folder: Path) -> None:
    cases = _values(1, [8] * 6)
    (folder / "a.tsv").write_text("".join("\t".join([LABELS[i % 3], *case[0]]) + "\n" for i, case in enumerate(cases)))


def _arff(folder: Path, n_channels: int) -> None:
    cases = _values(n_channels, [8] * 6)
    numbers = [f"@attribute att{i} numeric" for i in range(8)]
    several = ["@attribute toy relational", *(f"\t{line}" for line in numbers), "@end toy"]
    head = ["% a comment", "@relation Toy", "", *(numbers if n_channels == 1 else several)]
    head += [f"@attribute target {{{','.join(LABELS)}}}", "", "@data"]
    texts = [",".join(case[0]) if n_channels == 1 else "'" + "\\n".join(map(",".join, case)) + "'" for case in cases]
    (folder / "a.arff").write_text("\n".join(head + [f"{text},{LABELS[i % 3]}" for i, text in enumerate(texts)]) + "\n")


def judge(name: str, read: Callable[[Path], Any], change: Callable[[Cases], Cases] = list) -> Callable[..., str]:
    def judge(folder: Path, windows: Windows, sound: Any) -> str:
        cases, labels = read(folder / name)
        return windows_are(windows, change(cases), labels, None)

    return judge


def padded(cases: Cases) -> Cases:
    """Zeros up to the longest; NaN at the end of all channels means a shorter case."""
    ends = [np.flatnonzero(~np.isnan(case).all(axis=0)) for case in cases]
    lengths = [int(end[-1]) + 1 if end.size else 0 for end in ends]
    if 0 in lengths:
        raise UnreadableError("a case has no value")
    cut = [case[:, :length] for case, length in zip(cases, lengths, strict=True)]
    return [np.pad(case, ((0, 0), (0, max(lengths) - case.shape[1]))) for case in cut]


def interpolated(cases: Cases) -> Cases:
    """Straight lines through gaps; a gap in all channels at the end of a case is none, but a shorter case."""
    out = []
    for case in cases:
        if (
            np.isnan(case[:, -1]).all()
            or np.isnan(case).all(axis=1).any()
            or not (np.abs(case) <= LARGEST_FLOAT32).any()
        ):
            raise UnreadableError("a case ends in a gap, or a channel is nothing but one")
        at = np.arange(case.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            out.append(np.stack([np.interp(at, at[~np.isnan(row)], row[~np.isnan(row)]) for row in case]))
    return out


def _kind(name: str, make: Callable[[Path], None], suffix: str, judge: Callable[..., str], **policies: Any) -> Kind:
    return Kind(
        name, make, {f"a.{suffix}": TEXT}, lambda folder: read_windows(folder / f"a.{suffix}", **policies), judge
    )


KINDS = [
    _kind("ts", lambda folder: _ts(folder, 1, [8] * 6), "ts", judge("a.ts", reference.ts_cases)),
    _kind("ts-multivariate", lambda folder: _ts(folder, 3, [8] * 6), "ts", judge("a.ts", reference.ts_cases)),
    _kind(
        "ts-unequal",
        lambda folder: _ts(folder, 2, [8, 5, 9, 7]),
        "ts",
        judge("a.ts", reference.ts_cases, padded),
        unequal="pad",
    ),
    _kind(
        "ts-missing",
        lambda folder: _ts(folder, 1, [8] * 6, missing=True),
        "ts",
        judge("a.ts", reference.ts_cases, interpolated),
        missing="interpolate",
    ),
    _kind("tsv", _tsv, "tsv", judge("a.tsv", reference.tsv_cases)),
    _kind("arff", lambda folder: _arff(folder, 1), "arff", judge("a.arff", reference.arff_cases)),
    _kind("arff-multivariate", lambda folder: _arff(folder, 2), "arff", judge("a.arff", reference.arff_cases)),
]
