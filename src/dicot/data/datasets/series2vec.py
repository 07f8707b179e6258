"""PAMAP2 as the paper used it: windows that Series2Vec's authors share as arrays, which no published script makes."""

from functools import partial
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError, MissingDataError
from dicot.data import Windows
from dicot.data.datasets.base import differences
from dicot.data.datasets.pamap2 import ACTIVITIES, OPTIONAL, PAMAP2
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.naming import naming
from dicot.data.npyfile import open_npz
from dicot.data.policies import Array

NAME = "pamap2-paper"
SIZES = Sizes(51_192, 11_590, 52, 100, 18)
ARRAYS = ("train_data", "train_label", "test_data", "test_label")
VALIDATION = ("val_data", "val_label")  # some of Series2Vec's files hold these as well
GROUPS = ("subjects 1 to 7", "subjects 8 and 9")  # the arrays do not say whose window is whose
# Class 0, 1, ... are the activities of both folders of the publisher in the order of their numbers.
LABELS = tuple({**ACTIVITIES, **OPTIONAL}[number] for number in sorted({**ACTIVITIES, **OPTIONAL}))
# The shared file is a pickled dictionary, which is not loaded here: unpickling can run code.
CONVERT = (
    """python -c "import numpy as np; d = np.load('PAMAP2.npy', allow_pickle=True).item(); """
    """np.savez('PAMAP2.npz', **{k: d[k] for k in d if hasattr(d[k], 'dtype')})\""""
)


def prepare(raw: Path, workspace: Workspace, sizes: Sizes = SIZES) -> PreparedParts:
    """Read the arrays that CONVERT wrote; other sizes than the paper's are refused.

    Training windows are those of train_data, or where these are too few those of train_data and val_data, as in
    Series2Vec's own loader.
    """
    path = _find(raw)
    workspace.on_progress(0.1, path.name)
    with naming(path), open_npz(path) as file:
        if absent := [name for name in ARRAYS if name not in file.names]:
            raise InputError(f"There is no {' and no '.join(absent)}. Convert Series2Vec's file again: {CONVERT}")
        joined = file.array_header(ARRAYS[0]).shape[0] != sizes.n_train and set(VALIDATION) <= set(file.names)
        arrays = file.read([*ARRAYS, *(VALIDATION if joined else ())])
        if joined:
            arrays["train_data"] = np.concatenate([arrays["train_data"], arrays.pop("val_data")])
            arrays["train_label"] = np.concatenate([arrays["train_label"], arrays.pop("val_label")])
        parts = [_part(arrays[f"{part}_data"], arrays[f"{part}_label"], sizes) for part in ("train", "test")]
        codes = np.unique(np.concatenate([label for _, label in parts]))
        (train, y), (test, y_test) = parts
        actual = Sizes(len(train), len(test), train.shape[1], train.shape[2], len(codes))
        if wrong := differences(actual, sizes):
            raise InputError(f"It holds {', '.join(wrong)}: it is not the file that the paper used.")
    both = [
        Windows(x, np.searchsorted(codes, label), np.full(len(x), group), NAME)
        for x, label, group in ((train, y, GROUPS[0]), (test, y_test, GROUPS[1]))
    ]
    notes = ["The file does not say whose window is whose: each part is one group."]
    notes += ["Training windows are train_data and val_data."] if joined else []
    return PreparedParts(both[0], both[1], LABELS[: len(codes)], notes=tuple(notes))


def _find(raw: Path) -> Path:
    found = sorted(path for path in raw.rglob("PAMAP2*.npz") if path.is_file())
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{raw} holds {', '.join(path.name for path in found)}. Leave the one that is meant.")
    pickled = sorted(path.name for path in raw.rglob("PAMAP2*.npy"))
    held = f"{raw} holds {pickled[0]}, which is pickled. Convert it" if pickled else f"{raw} has no PAMAP2.npz. Make it"
    raise MissingDataError(f"{held} where you trust it, in its folder: {CONVERT}")


def _part(x: Array, label: Array, sizes: Sizes) -> tuple[Array, Array]:
    """Windows (N, C, T) in float32 with whole-numbered labels (N,); files with time before channels are turned."""
    if x.ndim == 3 and x.shape[1:] == (sizes.n_times, sizes.n_channels):
        x = x.transpose(0, 2, 1)
    if x.ndim != 3 or label.shape != x.shape[:1] or x.dtype.kind != "f":
        raise InputError(f"Expected windows (N, C, T) with a label each; got {x.shape} of {x.dtype} and {label.shape}.")
    codes = label.astype(np.int64) if label.dtype.kind in "iuf" else np.empty(0, np.int64)
    if not np.array_equal(codes, label):
        raise InputError(f"Labels must be whole numbers; got {label[:3].tolist()}.")
    return np.ascontiguousarray(x, dtype=np.float32), codes


PAMAP2_PAPER = PreparedSet(
    name=NAME,
    source="https://github.com/Navidfoumani/Series2Vec",
    licence="CC BY 4.0 (of the recordings); see the source for the arrays",
    citation=f"{PAMAP2.citation}; Foumani et al., Series2Vec, Data Mining and Knowledge Discovery 38, 2024",
    download="PAMAP2.npy in the folder of large data sets that its README links (it may be called PAMAP2-001.npy). "
    f"It is a pickled dictionary, which you convert yourself, where you trust it ({CONVERT}), into PAMAP2.npz.",
    read=partial(prepare, sizes=SIZES),
    expected=SIZES,
    transfer_channels=PAMAP2.transfer_channels,
    paper_transfer_channels=PAMAP2.paper_transfer_channels,
)
