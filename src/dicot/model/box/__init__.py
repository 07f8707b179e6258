"""The box: models that come with the library. Each is a folder of `save_pretrained` with a card, found by its name."""

from pathlib import Path

BOX = {path.name: path for path in sorted(Path(__file__).parent.iterdir()) if (path / "config.json").is_file()}


def in_box(model: str | Path) -> Path:
    """Return the folder of a model: a name in the box, or else the path that was given; a folder of yours wins."""
    return BOX.get(str(model), Path(model)) if not Path(model).exists() else Path(model)
