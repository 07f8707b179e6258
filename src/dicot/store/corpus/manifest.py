"""manifest.json: what a corpus holds, which files it is in, and what became of every source. It is written last."""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dicot import __version__
from dicot.core.errors import ModelFileError, brief
from dicot.core.storage import check_format, check_seal, sealed, write_atomic

MANIFEST = "manifest.json"
FORMAT, FORMAT_VERSION = "dicot-corpus", 1
SHARDS = "shards"
DTYPES = ("float32", "float16")
AGAIN = "Build the corpus again."
LARGEST = 2**30  # bytes of a manifest: some millions of shards
NAME = re.compile(r"\d{6,}-\d{3,}")  # of a shard: the number of its source, and its own within that


@dataclass(frozen=True)
class Shard:
    """Windows of one source: NAME.npy (n, C, T), and NAME.npz with what is known of each."""

    name: str
    windows: int
    bytes: int
    sha256: str
    about_bytes: int
    about_sha256: str


@dataclass(frozen=True)
class Source:
    """A file that a corpus was built of, and what became of it."""

    file: str  # a path, or a URL
    name: str  # of its recording; where it has several groups, ":" and the group follow it
    bytes: int
    changed: str  # when, as its file system says it
    windows: int = 0
    recordings: int = 0
    damaged: str = ""  # why it was left out


@dataclass(frozen=True)
class Manifest:
    """What a corpus holds."""

    shape: tuple[int, int]  # (C, T)
    dtype: str
    channels: tuple[str, ...]
    rate: float | None
    stride: int  # time steps
    options: dict[str, Any]  # as they were given
    shards: tuple[Shard, ...]
    sources: tuple[Source, ...]

    @property
    def windows(self) -> int:
        """Count the windows."""
        return sum(shard.windows for shard in self.shards)

    @property
    def bytes(self) -> int:
        """Count the bytes of all shards."""
        return sum(shard.bytes + shard.about_bytes for shard in self.shards)

    @property
    def damaged(self) -> tuple[Source, ...]:
        """List the sources that were left out."""
        return tuple(source for source in self.sources if source.damaged)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place; from now on the folder is a corpus."""
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "library_version": __version__}
    config = sealed(json.loads(json.dumps({**head, "windows": manifest.windows, **asdict(manifest)}, allow_nan=False)))
    write_atomic(folder / MANIFEST, (json.dumps(config, indent=1, allow_nan=False) + "\n").encode())


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a corpus."""
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelFileError(f"{folder} is not a corpus: it has no {MANIFEST}. `dicot corpus build` makes one.")
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.stat().st_size:,} bytes are more than it can have")
        config = json.loads(path.read_bytes().decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). {AGAIN}") from error
    check_format(path, config, FORMAT, FORMAT_VERSION)
    try:
        check_seal(config)
        return _checked(config)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). {AGAIN}") from error


def _checked(config: dict[str, Any]) -> Manifest:
    shape, rate, stride = config["shape"], config["rate"], config["stride"]
    if not (isinstance(shape, list) and len(shape) == 2 and all(_is_count(n, 1) for n in shape)):
        raise ValueError(f"the shape is {shape!r}")
    if config["dtype"] not in DTYPES or not isinstance(config["options"], dict):
        raise ValueError(f"the dtype is {config['dtype']!r}")
    if not (rate is None or (isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < 1e12)):
        raise ValueError(f"the rate is {rate!r}")
    names = config["channels"]
    if not (isinstance(names, list) and len(set(names)) == shape[0] and all(isinstance(n, str) and n for n in names)):
        raise ValueError(f"the channels are {names!r}")
    shards = tuple(_entry(Shard, entry) for entry in config["shards"])
    width = {"float32": 4, "float16": 2}[config["dtype"]] * shape[0] * shape[1]
    for shard in shards:
        if not NAME.fullmatch(shard.name) or not shard.windows or shard.bytes <= shard.windows * width:
            raise ValueError(f"a shard is {shard}")
    if len({shard.name for shard in shards}) < len(shards) or not shards or not _is_count(stride, 1):
        raise ValueError("its shards or its stride cannot be")
    manifest = Manifest(
        (shape[0], shape[1]),
        config["dtype"],
        tuple(names),
        None if rate is None else float(rate),
        stride,
        config["options"],
        shards,
        tuple(_entry(Source, entry) for entry in config["sources"]),
    )
    if config["windows"] != manifest.windows:
        raise ValueError(f"it says {config['windows']!r} windows, and its shards have {manifest.windows}")
    return manifest


def _entry(kind: type[Any], entry: Any) -> Any:
    """Make a shard or source of what JSON holds."""
    if not isinstance(entry, dict) or set(entry) != {field.name for field in fields(kind)}:
        raise ValueError(f"an entry is {entry!r}")
    for field in fields(kind):
        sound = _is_count(entry[field.name], 0) if field.type is int else isinstance(entry[field.name], str)
        if not sound:
            raise ValueError(f"{field.name!r} is {entry[field.name]!r}")
    return kind(**entry)


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
