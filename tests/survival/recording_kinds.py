"""Long recordings as `read_recording` takes them: .csv, .csv.gz, .parquet, .npz, .mat and .wav."""

import gzip
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import loadmat, savemat

from dicot.data import Recording, read_recording
from tests.survival.array_kinds import parse_npz
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import BINARY, TEXT, ZIP
from tests.survival.reference import is_lost, long_csv, number
from tests.survival.table_kinds import change_column

CHANNELS = ["x", "z"]
NAMED = {"time": "t", "channels": CHANNELS, "label": "road"}


def _columns() -> dict[str, list[Any]]:
    values = np.random.default_rng(10).normal(size=(2, 40)).round(4)
    return {
        "t": [round(0.02 * i, 2) for i in range(40)],
        "x": values[0].tolist(),
        "z": values[1].tolist(),
        "road": ["wet" if i < 15 else "dry" for i in range(40)],
    }


def _csv(folder: Path) -> None:
    columns = _columns()
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    (folder / "a.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def _parquet(folder: Path) -> None:
    pq.write_table(pa.table(_columns()), folder / "a.parquet", compression="none")


def _npz(folder: Path) -> None:
    columns = {name: np.array(values) for name, values in _columns().items()}
    np.savez(folder / "a.npz", X=np.stack([columns["x"], columns["z"]]), channels=CHANNELS, t=columns["t"])


def _is_recording(found: Recording, times: Sequence[Any], channels: Sequence[Sequence[float]]) -> str:
    """Rows sorted by time, the values of the file, and NaN where it has none."""
    if (wrong := _unsound(found)) or found.times is None:
        return wrong or "the time stamps are lost"
    if found.values.shape != (len(channels), len(times)):
        return f"values are {found.values.shape}, in the file {len(channels)} x {len(times)}"
    if not all(isinstance(time, int | float) and math.isfinite(time) for time in times):
        return ""  # dates: what they come to is another test's matter
    order = np.argsort(np.array(times, float), kind="stable")
    wanted = np.array(channels, float)[:, order]
    if np.isinf(wanted).any():
        raise UnreadableError("a value is infinite")
    close = np.allclose(found.values, wanted, rtol=1e-6, atol=1e-37, equal_nan=True)
    return "" if close else "the values are not those of the file"


def _unsound(found: Recording) -> str:
    if found.values.ndim != 2 or not found.values.size or found.values.dtype.kind != "f":
        return f"values are {found.values.dtype} {found.values.shape}"
    if np.isinf(found.values).any():
        return "inf among the values"
    if found.times is not None and not (np.isfinite(found.times).all() and (np.diff(found.times) > 0).all()):
        return "the times do not rise"
    if found.rate is not None and not (math.isfinite(found.rate) and found.rate > 0):
        return f"the rate is {found.rate}"
    return ""


def judge_csv(folder: Path, found: Recording, sound: Any, name: str = "a.csv") -> str:
    columns = long_csv(folder / name)
    if lacking := {"t", "x", "z", "road"} - columns.keys():
        raise UnreadableError(f"there is no column {lacking}")
    times = [number(cell) if _is_plain(cell) else cell for cell in columns["t"]]
    return _is_recording(found, times, [[number(cell) for cell in columns[name]] for name in CHANNELS])


def _gz(folder: Path) -> None:
    _csv(folder)
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes(), mtime=0))


def judge_gz(folder: Path, found: Recording, sound: Any) -> str:
    """Unpacked by zlib, one member after the other."""
    left, text = (folder / "a.csv.gz").read_bytes(), b""
    try:
        while left.strip(b"\0"):
            packer = zlib.decompressobj(31)
            text += packer.decompress(left.lstrip(b"\0") if text else left)
            if not packer.eof:
                raise UnreadableError("it ends too early")
            left = packer.unused_data
    except zlib.error as error:
        raise UnreadableError(str(error)) from error
    (folder / "unpacked.csv").write_bytes(text)
    return judge_csv(folder, found, sound, "unpacked.csv")


def _mat(folder: Path) -> None:
    columns = {name: np.array(values) for name, values in _columns().items() if name != "road"}
    savemat(folder / "a.mat", {**columns, "road": np.repeat([1.0, 2.0], [15, 25])}, do_compression=False)


def judge_mat(folder: Path, found: Recording, sound: Any) -> str:
    try:
        held = loadmat(folder / "a.mat")
        columns = {name: held[name].astype(float).ravel().tolist() for name in ("t", *CHANNELS)}
    except Exception as error:  # scipy has many for what a damaged file may hold
        raise UnreadableError(str(error)) from error
    return _is_recording(found, columns["t"], [columns[name] for name in CHANNELS])


def _is_plain(cell: str) -> bool:
    try:
        return not math.isnan(number(cell))
    except UnreadableError:
        return False


def judge_parquet(folder: Path, found: Recording, sound: Any) -> str:
    try:
        table = pq.read_table(folder / "a.parquet")
        columns = {name: table.column(i).to_pylist() for i, name in enumerate(table.column_names)}
    except (pa.ArrowException, OSError) as error:
        raise UnreadableError(str(error)) from error
    except OverflowError:  # dates that Python has no words for
        return _unsound(found)
    if len(columns) < table.num_columns or {"t", "x", "z", "road"} - columns.keys():
        raise UnreadableError(f"the columns are {table.column_names}")
    values = [[math.nan if is_lost(cell) else _float(cell) for cell in columns[name]] for name in CHANNELS]
    return _is_recording(found, columns["t"], values)


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError) as error:
        raise UnreadableError(f"{str(cell)[:40]!r} is no number") from error


def judge_npz(folder: Path, found: Recording, sound: Any) -> str:
    """One of the arrays of each name is what was read."""
    held = parse_npz(folder / "a.npz")
    xs = [x for name in ("X", "x", "data", "values") for x in held.get(name, [])]
    if not xs:
        return _unsound(found)  # the arrays are taken for columns then
    fitting = [x for x in xs if x is not None and x.ndim == 2 and x.dtype.kind in "biuf"]
    if not fitting:
        raise UnreadableError("X is damaged")
    if "t" not in held:
        return _unsound(found)
    times = [t.tolist() for t in held["t"] if t is not None and t.ndim == 1 and t.dtype.kind in "biuf"]
    complaints = [_is_recording(found, time, x.astype(float)) for x in fitting for time in times]
    return "" if "" in complaints or not complaints else complaints[0]


def _wav(width: int, kind: int = 1) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        dice = np.random.default_rng(width)
        whole = dice.integers(0, 256, 50 * 2 * width, dtype=np.uint8)
        numbers = (whole if kind == 1 else dice.normal(scale=3, size=50 * 2).astype(f"<f{width}")).tobytes()
        form = struct.pack("<HHIIHH", kind, 2, 100, 200 * width, 2 * width, 8 * width)
        body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(numbers)) + numbers
        (folder / "a.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)

    return make


def change_wav_header(data: bytes, dice: Random) -> bytes:
    """Another number in one of the fields before the sound."""
    at, width = dice.choice([(4, 4), (16, 4), (20, 2), (22, 2), (24, 4), (28, 4), (32, 2), (34, 2), (40, 4)])
    value = dice.choice([0, 1, 3, 8, 16, 24, 25, 32, 40, 64, 0x7FFF, 0xFFFE, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1])
    return data[:at] + (value % 256**width).to_bytes(width, "little") + data[at + width :]


def judge_wav(folder: Path, found: Recording, sound: Any) -> str:
    """The chunks read once more, by hand."""
    data = (folder / "a.wav").read_bytes()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise UnreadableError("no sound file")
    at, form, raw = 12, None, None
    while raw is None and at + 8 <= len(data):
        name, (size,) = data[at : at + 4], struct.unpack_from("<I", data, at + 4)
        if name == b"fmt " and size >= 16 and at + 24 <= len(data):
            form = struct.unpack_from("<HHIIHH", data, at + 8)
        elif name == b"data":
            raw = data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    if form is None or raw is None:
        raise UnreadableError("it has no form or no sound")
    kind, n_channels, rate, _, _, bits = form
    width = (bits + 7) // 8
    if (
        width not in ((4, 8) if kind == 3 else (1, 2, 3, 4))
        or not n_channels
        or not rate
        or len(raw) % (n_channels * width)
    ):
        raise UnreadableError(f"{n_channels} channels of {bits} bits at {rate} Hz")
    if wrong := _unsound(found):
        return wrong
    if found.rate != rate:
        return f"the rate is {found.rate}, by the header {rate}"
    if found.values.size != len(raw) // width or len(found.values) != n_channels:
        return f"values are {found.values.shape} for {len(raw)} bytes of {n_channels} channels with {width} bytes"
    whole = [raw[i : i + width] for i in range(0, len(raw), width)]
    if kind == 3:
        floats = np.array([struct.unpack("<f" if width == 4 else "<d", b)[0] for b in whole]).reshape(-1, n_channels).T
        if np.isinf(floats).any():
            raise UnreadableError("a value is infinite")
        return "" if np.allclose(found.values, floats, equal_nan=True) else "the values are not those of the file"
    numbers = [b[0] - 128 if width == 1 else int.from_bytes(b, "little", signed=True) for b in whole]
    wanted = (np.array(numbers, float) / 2 ** (8 * width - 1)).reshape(-1, n_channels).T
    return "" if np.allclose(found.values, wanted, atol=1e-6) else "the values are not those of the file"


KINDS = [
    Kind("recording-csv", _csv, {"a.csv": TEXT}, lambda f: read_recording(f / "a.csv", **NAMED), judge_csv),
    Kind(
        "recording-parquet",
        _parquet,
        {"a.parquet": (*BINARY, *(change_column,) * 12)},
        lambda folder: read_recording(folder / "a.parquet", **NAMED),
        judge_parquet,
    ),
    Kind("recording-npz", _npz, {"a.npz": ZIP}, lambda folder: read_recording(folder / "a.npz"), judge_npz),
    Kind("recording-csv-gz", _gz, {"a.csv.gz": BINARY}, lambda f: read_recording(f / "a.csv.gz", **NAMED), judge_gz),
    Kind("recording-mat", _mat, {"a.mat": BINARY}, lambda f: read_recording(f / "a.mat", **NAMED), judge_mat),
    *(
        Kind(
            f"wav-{'float-' if kind == 3 else ''}{8 * width}",
            _wav(width, kind),
            {"a.wav": (*BINARY, *(change_wav_header,) * 12)},
            lambda folder: read_recording(folder / "a.wav"),
            judge_wav,
        )
        for width, kind in ((1, 1), (2, 1), (3, 1), (4, 3), (8, 3))
    ),
]
