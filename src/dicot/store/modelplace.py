"""Where the model of vectors is: one that was fitted for them is kept in a folder beside them."""

from pathlib import Path

from dicot.core.errors import InputError
from dicot.store.vectors import MadeOf

CONFIG = "config.json"  # as dicot.model.files writes it, which loads torch


def model_beside(vectors: Path) -> Path:
    """Name the folder of the model that is fitted for a file or folder of vectors: v.parquet has v.model."""
    name = vectors.stem if vectors.suffix else vectors.name
    return vectors.with_name(f"{name}.model")


def check_model_beside(vectors: Path) -> None:
    """Refuse vectors whose model would be written into a folder that holds something else."""
    folder = model_beside(vectors)
    if not folder.exists() or (folder / CONFIG).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise InputError(
            f"The model that is fitted for {vectors} is kept in {folder}, and something else is there. Move it, or "
            "choose another name for the vectors (--out)."
        )


def places_of_model(vectors: Path, source: MadeOf | None) -> list[str | Path]:
    """List where the model of some vectors may be: beside them, or where it was when they were made."""
    was_at = [] if source is None or not source.at else [source.at]
    return [model_beside(vectors), *was_at]
