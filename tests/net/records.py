"""What is kept of a result: a hash of its exact bytes, and a few numbers that tell rounding from another result."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

TOLERANCE = 2e-3  # relative to the size of a typical value
SAMPLED = 16  # values that are kept as they are
SUMS = 8  # of all values with random signs: these notice a change in any of them
TEXT = 160  # characters of a plain value that are kept, for whoever reads a difference
SAME, ROUNDED, DIFFERS = "same", "within rounding", "DIFFERS"

Record = dict[str, Any]


def record_of(value: Any) -> Record:
    """Return the record of an array of numbers, or of plain data."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return _record_of_array(value)
    plain = json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)
    return {"sha256": _sha256(plain.encode()), "text": plain[:TEXT]}


def _record_of_array(array: np.ndarray) -> Record:
    about = f"{array.dtype.str} {array.shape}"
    digest = _sha256(about.encode() + np.ascontiguousarray(array).tobytes())
    record: Record = {"sha256": digest, "array": about}
    if array.dtype.kind != "f":  # whole numbers are not rounded
        return {**record, "values": array.ravel()[_places(array.size)].tolist()}
    finite = np.isfinite(array).ravel()
    flat = np.where(finite, array.ravel(), 0).astype(np.float64)
    signs = np.random.default_rng(array.size).choice([-1.0, 1.0], size=(SUMS, array.size))
    size = float(np.sqrt(np.mean(flat**2))) if flat.size else 0.0
    return {
        **record,
        "not finite": _sha256(np.packbits(finite).tobytes())[:8] if not finite.all() else "",
        "size": _short(size),
        "values": [_short(one) for one in flat[_places(flat.size)]],
        "sums": [_short(one) for one in signs @ flat],
    }


def compare(frozen: Record | None, now: Record | None) -> str:
    """Say whether a result is the same, differs by rounding alone, or is another."""
    if frozen is None or now is None:
        return DIFFERS
    if frozen["sha256"] == now["sha256"]:
        return SAME
    if "sums" not in frozen or "sums" not in now:
        return DIFFERS
    if any(frozen[what] != now[what] for what in ("array", "not finite")):
        return DIFFERS
    return ROUNDED if difference(frozen, now) <= TOLERANCE else DIFFERS


def difference(frozen: Record, now: Record) -> float:
    """Return the largest difference, relative to the typical value, and of sums to what they typically are."""
    one, other = np.array(frozen["values"]), np.array(now["values"])
    size = max(frozen["size"], np.finfo(np.float32).tiny)
    count = max(1, int(np.prod(_shape(frozen["array"]))))
    apart = np.abs(one - other) / np.maximum(np.abs(one), size)
    sums = np.abs(np.array(frozen["sums"]) - np.array(now["sums"])) / (size * np.sqrt(count))
    return float(max(apart.max(initial=0), sums.max(initial=0), abs(frozen["size"] - now["size"]) / size))


def describe(frozen: Record | None, now: Record | None) -> str:
    """Say in a few words how two records differ."""
    if frozen is None or now is None:
        return "is new" if frozen is None else "is gone"
    if "text" in frozen or "text" in now:
        return f"was {frozen.get('text', frozen.get('array'))}; is {now.get('text', now.get('array'))}"
    if frozen["array"] != now["array"]:
        return f"was {frozen['array']}; is {now['array']}"
    if "sums" not in frozen:
        return f"was {frozen['values']}; is {now['values']}"
    if frozen["not finite"] != now["not finite"]:
        return "other values are missing"
    return f"by {difference(frozen, now):.1e} of the typical value"


def differences(frozen: Mapping[str, Record], now: Mapping[str, Record]) -> Iterator[tuple[str, str, str]]:
    """Yield name, verdict and words for every record that is not the same."""
    for name in sorted(frozen.keys() | now.keys()):
        one, other = frozen.get(name), now.get(name)
        if (verdict := compare(one, other)) != SAME:
            yield name, verdict, describe(one, other)


def hash_of(texts: Sequence[str]) -> str:
    """Return one hash of many texts."""
    return _sha256("\n".join(texts).encode())


def _places(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, SAMPLED)).round().astype(int)) if n else np.array([], int)


def _shape(about: str) -> tuple[int, ...]:
    sizes = about[about.index("(") + 1 : -1].split(",")
    return tuple(int(one) for one in sizes if one.strip())


def _plain(value: Any) -> Any:
    """Return data as JSON knows it; arrays of text become lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
