"""Where the model of vectors is: one that was fitted for them is kept in a folder beside them."""

from pathlib import Path

from dicot.core.errors import InputError
from dicot.store.vectors import MadeOf, Vectors

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


def check_same_model(path: Path, model: str | None, n_features: int, other: Path, vectors: Vectors) -> None:
    """Refuse vectors, or a classifier, of another model than that of some vectors: distances would mean nothing.

    model : the hash of the model of what is in `path`; None where it does not say it
    """
    models = {model, vectors.model} - {None}
    if n_features == vectors.x.shape[1] and len(models) < 2:
        return
    folder = model_beside(path)
    remedy = f": dicot embed {folder} DATA --out {other}" if folder.is_dir() else ""
    raise InputError(f"{path} and {other} were made by different models. Embed both by the same model{remedy}.")
