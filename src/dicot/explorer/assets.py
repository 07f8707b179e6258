"""The files of the page, built from web/ and read from the package once: a fixed table of names."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from dicot.core.errors import InputError

INDEX = "index.html"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str  # as HTTP names it


Assets = Mapping[str, Asset]  # by name, such as app.js


def load_assets(folder: Traversable | None = None) -> Assets:
    """Read all files of the page; without the folder they come from the installed package."""
    folder = files("dicot.explorer").joinpath("assets") if folder is None else folder
    found = dict(_read(folder, "")) if folder.is_dir() else {}
    if INDEX not in found:
        raise InputError(
            "The explorer's page is not built: dicot/explorer/assets has no index.html. Install dicot from a wheel, or "
            "build the page: npm ci && npm run build in web/."
        )
    return found


def _read(folder: Traversable, above: str) -> Iterator[tuple[str, Asset]]:
    for entry in folder.iterdir():
        suffix = f".{entry.name.rpartition('.')[2]}"
        if entry.is_dir():
            yield from _read(entry, f"{above}{entry.name}/")
        elif suffix in KINDS:
            yield f"{above}{entry.name}", Asset(entry.read_bytes(), KINDS[suffix])
