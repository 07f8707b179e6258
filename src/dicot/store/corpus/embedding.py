"""The vectors of a corpus: one .parquet for each of its shards, in any order and by any process, and a manifest last.

`begin` says what is left to do, `embed_shard` does one shard by itself, `finish` writes the manifest. What a killed
process leaves is one temporary file; the bytes do not depend on who did which shard, or how often it was begun anew.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from dicot import __version__
from dicot.core.errors import InputError, ModelFileError, brief, lookup
from dicot.core.progress import Bar
from dicot.core.storage import (
    arrow,
    check_format,
    check_seal,
    check_writable,
    remove_leftovers,
    sealed,
    write_atomic,
    writing,
)
from dicot.core.storage.locks import only_writer
from dicot.data.policies import Array
from dicot.store.corpus.manifest import NAME, Source
from dicot.store.corpus.sources import SCHEME
from dicot.store.corpus.store import Corpus
from dicot.store.vectors import source_of_file, source_of_recordings, write_vectors

MANIFEST, PLAN = "manifest.json", "plan.json"
FORMAT, FORMAT_VERSION = "dicot-corpus-vectors", 1
FOLDER, NOTES = "vectors", ".embedding"
DTYPES = ("float32", "float16")
AGAIN = "Embed the corpus again."
LARGEST = 2**30  # bytes of a manifest


class Embedder(Protocol):
    """What turns windows into vectors (N, F): a TimeSeriesEmbedder, an OnnxEmbedder."""

    def transform(self, X: Any, /) -> Array: ...


@dataclass(frozen=True)
class VectorShard:
    """The vectors of one shard."""

    name: str
    rows: int
    features: int
    bytes: int
    sha256: str


class EmbeddedCorpus(NamedTuple):
    """What a folder of vectors holds."""

    folder: Path
    corpus: str  # the fingerprint of the corpus
    model: str  # the hash of the model
    dtype: str
    shards: tuple[VectorShard, ...]

    @property
    def rows(self) -> int:
        """Count the vectors."""
        return sum(shard.rows for shard in self.shards)

    @property
    def features(self) -> int:
        """Give the length of a vector."""
        return self.shards[0].features

    def source(self) -> dict[str, Any] | None:
        """Return what all vectors were made of, as each file says it of its own; None where one does not."""
        said: list[dict[str, Any]] = []
        for file in self.files:
            source = source_of_file(file)
            if source is None or not isinstance(source.get("recordings"), dict):
                return None
            said.append(source)
        joined = {name: entry for source in said for name, entry in source["recordings"].items()}
        return {**said[0], "data": [entry["file"] for entry in joined.values()], "recordings": joined}

    @property
    def files(self) -> list[Path]:
        """List the files in the order of the corpus."""
        return [self.folder / FOLDER / f"{shard.name}.parquet" for shard in self.shards]


def embed_corpus(
    model: Embedder,
    corpus: Corpus,
    out: str | Path,
    *,
    model_hash: str,
    dtype: str = "float32",
    overwrite: bool = False,
    on_shard: Callable[[int, int], None] = lambda done, total: None,
) -> EmbeddedCorpus:
    """Embed all windows of a corpus, shard by shard, in this process; killed, the same call continues.

    Parameters
    ----------
    model : what has a `transform`
    out : a folder for vectors/*.parquet, whose rows are recording, start, end, group, label and vector
    model_hash : tells models apart, so that no run is continued by another one
    dtype : of the numbers of a vector, "float32" or "float16"
    overwrite : replace vectors of another corpus or model
    on_shard : is told how many shards are done, and how many there are
    """
    folder = Path(out)
    with only_writer(folder, folder=True):
        left = begin(corpus, folder, model_hash=model_hash, dtype=dtype, overwrite=overwrite)
        total = len(corpus.shards)
        with Bar("embed", total) as bar:
            for done, number in enumerate(left, start=total - len(left)):
                bar.update(done, "shards")
                embed_shard(model, corpus, number, folder)
                on_shard(done + 1, total)
        return finish(corpus, folder)


def begin(
    corpus: Corpus, folder: Path, *, model_hash: str, dtype: str = "float32", overwrite: bool = False
) -> list[int]:
    """Return the numbers of the shards that have no vectors yet; the caller holds the lock of the folder."""
    lookup(dict.fromkeys(DTYPES), dtype, "dtype")
    arrow()
    check_writable(folder, folder=True)
    plan = {"corpus": corpus.fingerprint(), "model": model_hash, "dtype": dtype}
    text = json.dumps(plan, sort_keys=True).encode()
    path = folder / PLAN
    if path.is_file() and path.read_bytes() != text:
        if not overwrite:
            raise InputError(
                f"{folder} holds vectors of another corpus, model or dtype. Choose another folder, or replace them "
                "(--overwrite)."
            )
        _clear(folder)
    with writing(folder):
        if not path.is_file() and (folder / FOLDER).exists():
            raise InputError(f"{folder} holds a folder {FOLDER!r} that is none of ours. Choose another folder.")
        for name in (PLAN, MANIFEST):
            remove_leftovers(folder / name)
    if not path.is_file() or path.read_bytes() != text:
        write_atomic(path, text)
    if (folder / MANIFEST).exists():
        read_embedded(folder)  # a damaged one is an error
        return []
    _remove_strays(folder, corpus)
    return [number for number in range(len(corpus.shards)) if _noted(folder, corpus, number) is None]


def embed_shard(model: Embedder, corpus: Corpus, number: int, folder: Path) -> VectorShard:
    """Embed one shard and write its vectors, whole or not at all; any process may do it, even twice."""
    plan = json.loads((folder / PLAN).read_bytes())
    windows, shard = corpus.shard(number), corpus.shards[number]
    vectors = np.ascontiguousarray(model.transform(windows), plan["dtype"])
    if not np.isfinite(vectors).all():
        raise InputError(
            f"A vector of shard {shard.name} is beyond what float16 holds. Write them with --dtype float32."
        )
    path = folder / FOLDER / f"{shard.name}.parquet"
    about = {
        key: value
        for key in ("recording", "start", "end", "y", "group")
        if (value := getattr(windows, key)) is not None
    }
    write_vectors(
        path, {"": {"X": vectors, **about}}, source_of_vectors(corpus, plan["model"], [corpus.source(number)])
    )
    entry = VectorShard(shard.name, len(windows), vectors.shape[1], path.stat().st_size, _hash_of(path))
    write_atomic(_note(folder, corpus, number), json.dumps(asdict(entry)).encode())
    return entry


def finish(corpus: Corpus, folder: Path) -> EmbeddedCorpus:
    """Write the manifest once all shards have vectors; from now on the folder is whole."""
    if not (folder / MANIFEST).exists():
        entries = [_noted(folder, corpus, number) for number in range(len(corpus.shards))]
        lost = [corpus.shards[number].name for number, entry in enumerate(entries) if entry is None]
        if lost:
            raise InputError(
                f"{len(lost)} shards of {corpus.path} have no vectors yet, the first is {lost[0]}. Embed them."
            )
        plan = json.loads((folder / PLAN).read_bytes())
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "library_version": __version__,
            **plan,
            "shards": [asdict(entry) for entry in entries if entry is not None],
        }
        _remove_strays(folder, corpus)
        write_atomic(folder / MANIFEST, (json.dumps(sealed(config), indent=1) + "\n").encode())
    with writing(folder):
        for note in (folder / NOTES).glob("*"):
            note.unlink(missing_ok=True)
        if (folder / NOTES).exists():
            (folder / NOTES).rmdir()
    return read_embedded(folder)


def is_embedded(folder: Path) -> bool:
    """Tell whether a folder is one of vectors, finished or not."""
    return (folder / PLAN).is_file() and (folder / FOLDER).is_dir()


def read_embedded(folder: str | Path, *, verify: bool = False) -> EmbeddedCorpus:
    """Read the manifest of a folder of vectors; sizes of files are checked, with `verify` every byte by its hash."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelFileError(
            f"{folder} has no {MANIFEST}: its vectors are not finished. Run `dicot corpus embed` again."
        )
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.stat().st_size:,} bytes are more than it can have")
        config = json.loads(path.read_bytes().decode())
        check_format(path, config, FORMAT, FORMAT_VERSION)
        check_seal(config)
        shards = tuple(_entry(entry) for entry in config["shards"])
        if not shards or len({shard.features for shard in shards}) > 1 or config["dtype"] not in DTYPES:
            raise ValueError("its shards do not fit to each other")
        found = EmbeddedCorpus(folder, str(config["corpus"]), str(config["model"]), config["dtype"], shards)
    except ModelFileError:
        raise
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged ({brief(error)}). {AGAIN}") from error
    for file, shard in zip(found.files, shards, strict=True):
        size = file.stat().st_size if file.is_file() else 0
        if size != shard.bytes:
            raise ModelFileError(f"{file} has {size:,} bytes, and the manifest says {shard.bytes:,}. {AGAIN}")
        if verify and _hash_of(file) != shard.sha256:
            raise ModelFileError(f"{file} was changed or damaged after it was written. {AGAIN}")
    return found


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(entry: Any) -> VectorShard:
    shard = VectorShard(**entry)
    counts = (shard.rows, shard.features, shard.bytes)
    if not re.fullmatch(NAME, shard.name) or not all(type(n) is int and n > 0 for n in counts):
        raise ValueError(f"a shard is {entry!r}")
    return shard


def source_of_vectors(corpus: Corpus, model: str, sources: Sequence[Source] | None = None) -> dict[str, Any] | None:
    """Say which recordings vectors were made of and how; nothing where these lay behind URLs.

    `sources` are those that have any of the vectors; None means all.
    """
    manifest = corpus.manifest
    sources = [source for source in manifest.sources if source.windows] if sources is None else sources
    if any(SCHEME in source.file for source in sources):
        return None
    own = {"dtype", "shard_bytes"}
    options = {key: value for key, value in manifest.options.items() if key not in own and value not in (None, False)}
    return source_of_recordings(
        [source.file for source in sources],
        options,
        {source.name: {"file": source.file, "bytes": source.bytes} for source in sources},
        manifest.channels,
        manifest.rate,
        manifest.shape[1],
        manifest.stride,
        model,
    )


def _note(folder: Path, corpus: Corpus, number: int) -> Path:
    return folder / NOTES / f"{corpus.shards[number].name}.json"


def _noted(folder: Path, corpus: Corpus, number: int) -> VectorShard | None:
    """Return what was noted of a shard whose vectors are there; None where it has to be done."""
    try:
        entry = _entry(json.loads(_note(folder, corpus, number).read_bytes()))
        file = folder / FOLDER / f"{entry.name}.parquet"
        return entry if file.stat().st_size == entry.bytes else None
    except (OSError, TypeError, ValueError, RecursionError):
        return None


def _remove_strays(folder: Path, corpus: Corpus) -> None:
    """Remove what killed processes left among the vectors."""
    named = {f"{shard.name}.parquet" for shard in corpus.shards}
    with writing(folder):
        for path in (folder / FOLDER).glob("*") if (folder / FOLDER).exists() else ():
            if path.name not in named:
                path.unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    with writing(folder):
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in (FOLDER, NOTES):
            for path in (folder / name).glob("*"):
                path.unlink(missing_ok=True)
