"""What vectors were made of: kept beside them, to find their series again and to tell later what is new."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, final

from dicot.core.errors import InputError, is_whole, quoted
from dicot.data.datasets import is_path
from dicot.data.reading import Reading
from dicot.data.stream import are_facts

KINDS = ("recordings", "file", "name")  # cases come from a file, or a data set by name


@final
@dataclass(frozen=True)
class MadeOf:
    """What vectors were made of, by which model and how."""

    kind: str  # one of KINDS
    data: tuple[str, ...]  # paths, or the name of the data set
    options: dict[str, Any]  # of recordings those of a Reading; of cases those of `load`
    model: str  # its hash
    channels: tuple[str, ...] | None = None
    rate: float | None = None  # time steps per second
    n_times: int | None = None  # of a window
    stride: int | None = None  # in time steps
    # Name of each file of recordings -> what it held: `facts_of` tells it, "file" and "bytes" at least.
    recordings: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_cases(cls, data: str, options: Mapping[str, Any], channels: Sequence[str] | None, model: str) -> "MadeOf":
        """Say that vectors were made of a file of cases or a data set by name, read with these options."""
        place = str(Path(data).expanduser().absolute()) if is_path(data) else data
        names = None if channels is None else tuple(channels)
        return cls("file" if is_path(data) else "name", (place,), dict(options), model, names)

    @property
    def files(self) -> dict[str, Path]:
        """Return the file of each recording."""
        return {name: Path(entry["file"]) for name, entry in self.recordings.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return plain if self.kind == "recordings" else {k: plain[k] for k in plain if k not in _OF_RECORDINGS}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], what: str) -> "MadeOf":
        """Take what a file says, checked: anybody may have written it. `what` is the file in errors."""
        made: dict[str, Any] = {"data": [], "options": {}, "model": "", "recordings": {}}
        made |= {one.name: said[one.name] for one in fields(cls) if said.get(one.name) is not None}
        counts = [made[key] for key in ("n_times", "stride") if key in made]
        sound = (
            made.get("kind") in KINDS
            and all(_are_texts(made.get(key, [])) for key in ("data", "channels"))
            and bool(made["data"])
            and all(is_whole(count, 1) for count in counts)
            and isinstance(made["options"], dict)
            and isinstance(made["model"], str)
            and isinstance(made["recordings"], dict)
            and all(map(are_facts, made["recordings"].values()))
        )
        try:
            if not sound:
                raise InputError(quoted(said))
            Reading(rate=made.get("rate"))
            if made["kind"] == "recordings":
                Reading.from_dict(made["options"])
        except (InputError, TypeError) as error:
            raise InputError(
                f"{what} is damaged: what it says of its source cannot be used ({error}). Embed it again."
            ) from error
        names = tuple(made.get("channels", ())) or None
        return cls(**{**made, "data": tuple(made["data"]), "channels": names})


_OF_RECORDINGS = ("n_times", "stride", "recordings")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
