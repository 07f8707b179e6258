"""Every error of a reader names the file that it came from."""

import csv
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dicot.errors import InputError, brief


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors inside into InputErrors that name the file."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    # RuntimeError: zipfile raises it for encrypted members and for compressions it does not know.
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        OverflowError,
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
        csv.Error,
    ) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix} ({brief(error)}). "
            "The file may be truncated or hold another format; write or fetch it again."
        ) from error
