"""A hash inside the file that it is of: taken while zeros stand in its place, behind a mark that tells where it is."""

import hashlib
import re

TENSORS = b'"sha256":"'  # the mark in the header of a .safetensors file, in an entry of its metadata
OPEN = "0" * 64  # what is written before the hash is known


def sealed(data: bytes, mark: bytes) -> bytes:
    """Return the content of a file with its hash in place of the zeros."""
    digest = hashlib.sha256(data).hexdigest().encode()
    whole = data.replace(mark + OPEN.encode(), mark + digest, 1)
    assert whole != data, "there is no place for a hash"
    return whole


def has_seal(data: bytes, mark: bytes) -> bool:
    """Tell whether there is a hash."""
    return _found(data, mark) is not None


def check_seal(data: bytes, mark: bytes) -> None:
    """Raise a ValueError that says why the hash of a file is not that of its content."""
    seal = _found(data, mark)
    if seal is None:
        raise ValueError("it has no hash")
    bare = data[: seal.start(1)] + OPEN.encode() + data[seal.end(1) :]
    if hashlib.sha256(bare).hexdigest().encode() != seal.group(1):
        raise ValueError("its hash does not match its contents")


def _found(data: bytes, mark: bytes) -> re.Match[bytes] | None:
    return re.search(re.escape(mark) + rb"([0-9a-f]{64})", data)
