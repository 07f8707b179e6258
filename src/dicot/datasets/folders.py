"""Where data sets are kept on this machine."""

import os
from pathlib import Path

from dicot.errors import InputError
from dicot.storage import cache_folder


def user_folder() -> Path | None:
    """The folder DICOT_DATA, where it is set."""
    root = os.environ.get("DICOT_DATA")
    if root and not Path(root).is_dir():
        raise InputError(f"DICOT_DATA names {root}, which is no folder. Correct or unset the variable.")
    return Path(root) if root else None


def data_folders() -> list[Path]:
    """Every place that is looked at, in this order; new data sets are written into the first."""
    user = user_folder()
    return [cache_folder()] if user is None else [user, cache_folder()]
