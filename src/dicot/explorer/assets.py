"""The files of the page, built from web/ and read from the package once: a fixed table of names."""

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from dicot.core.errors import InputError

INDEX, SCRIPT, STYLE = "index.html", "app.js", "app.css"
KINDS = {INDEX: "text/html", SCRIPT: "text/javascript", STYLE: "text/css"}


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str  # as HTTP names it


Assets = Mapping[str, Asset]  # by name


def load_assets(folder: Traversable | None = None) -> Assets:
    """Read the files of the page; without the folder they come from the installed package."""
    folder = files("dicot.explorer").joinpath("assets") if folder is None else folder
    if lacking := [name for name in KINDS if not folder.joinpath(name).is_file()]:
        raise InputError(
            f"The explorer's page is not built: {folder} has no {lacking[0]}. Install dicot from a wheel, or build the "
            "page: npm ci && npm run build in web/."
        )
    return {name: Asset(folder.joinpath(name).read_bytes(), f"{kind}; charset=utf-8") for name, kind in KINDS.items()}
