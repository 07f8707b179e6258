"""The paths of a command, looked at before anything is read and before torch is imported.

What a command reads must be there, and what it writes must not be: nothing is replaced without --overwrite.
"""

import glob
from collections.abc import Iterable
from pathlib import Path

from dicot.core.errors import InputError, WrongCallError
from dicot.core.storage import check_writable, refuse_existing

MADE_BY = {
    "vectors": "`dicot embed DATA --out {}` writes one.",
    "classifier": "`dicot classify VECTORS --save {}` writes one.",
    "file": "Check the path.",
}
PAGE_SUFFIXES = (".html", ".htm")


def check_inputs(kind: str, *paths: Path | None) -> None:
    """Refuse a path of this kind that leads nowhere, with the command that makes such a file."""
    for path in paths:
        if path is not None and not path.exists():
            raise InputError(f"There is no file {path}. {MADE_BY[kind].format(path)}")


def check_outputs(*paths: Path | None, overwrite: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a file that is there already, unless it may be replaced; one of the `inputs` never may be."""
    read = [path for path in inputs if path is not None and path.exists()]
    for path in paths:
        if path is None:
            continue
        if path.exists() and any(path.samefile(one) for one in read):
            raise InputError(f"{path} is read by this command, and would be lost. Choose another name to write to.")
        refuse_existing(path, overwrite)
        check_writable(path)


def check_table(path: Path | None) -> None:
    """Refuse a name under which no table can be written."""
    from dicot.store.vectors import TABLES, check_out

    if path is not None:
        check_out(path, TABLES)


def check_page(path: Path, option: str) -> None:
    """Refuse a name under which no browser would open the page that is written there.

    It also keeps --overwrite from replacing a file of another kind, such as notes or a table.
    """
    if path.suffix.lower() not in PAGE_SUFFIXES:
        raise WrongCallError(
            f"{option} {path} has the suffix {path.suffix!r}; a page is an .html: {option} {path.with_suffix('.html')}."
        )


def check_output_folder(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that holds something already, unless files of the same names may be replaced."""
    if folder is None:
        return
    if folder.is_dir() and any(folder.iterdir()):
        refuse_existing(folder, overwrite)
    check_writable(folder, folder=True)


def check_model_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse weights of another program in a folder for a model; a model of dicot is compared with the run itself."""
    weights = folder / "model.safetensors"
    if not (folder / "config.json").exists():
        refuse_existing(weights, overwrite, "choose another folder")


def check_data(data: str) -> None:
    """Refuse DATA that are neither there nor known by name."""
    from dicot.data.datasets import DATASETS, is_path

    path = Path(data).expanduser()
    if path.exists():
        return
    if glob.has_magic(data):
        if not any(glob.iglob(str(path), recursive=True)):
            raise InputError(f"No file is named like {data}. Check the pattern.")
    elif is_path(data):
        raise InputError(f"There is no file or folder {path}. Check the path.")
    else:
        DATASETS.find(data)


def check_model(model: Path) -> None:
    """Refuse a MODEL that is neither a folder nor a file."""
    if not model.exists():
        raise InputError(
            f"There is no model {model}. `dicot pretrain DATA --out {model}` makes one, and `dicot list models` names "
            "those that come with dicot."
        )
