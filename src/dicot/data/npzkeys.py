"""Which array of an .npz file is which: cases, labels and groups by their usual names, in any case."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dicot.errors import InputError, did_you_mean

PARTS = ("train", "test")
_WHO = ("group", "user", "subject", "person", "patient", "participant", "volunteer", "individual", "device")
_WHERE = ("record", "recording", "session")
_ENDS = ("", "s", "id", "ids", "_id", "_ids")
ROLES: dict[str, tuple[str, ...]] = {
    "X": ("x", "data", "values"),
    "y": ("y", "label", "labels", "target", "targets", "class"),
    "group": ("people", *(word + end for word in (*_WHO, *_WHERE) for end in _ENDS)),
}
_WORDS = {"X": "the cases", "y": "the labels", "group": "the groups"}
_OPTIONS = {"y": "label", "group": "group"}  # of a reader, which say what to take


class Keys(NamedTuple):
    """The name of the array for each role, by part: "train" and "test", or "" where the file holds no split."""

    parts: dict[str, dict[str, str]]
    unused: tuple[str, ...]


def assign_keys(names: Sequence[str], is_scalar: Callable[[str], bool], chosen: Mapping[str, str]) -> Keys:
    """Each array's role; `chosen` are names by role that were asked for. A single value is a remark, not a role."""
    lists = [name for name in names if not is_scalar(name)]
    split = any(_plays(name, "X", "train") for name in lists)
    parts = {}
    for part in PARTS if split else ("",):
        if any(_plays(name, "X", part) for name in lists):
            found = {role: _find(lists, role, part, chosen.get(role)) for role in ROLES}
            parts[part] = {role: name for role, name in found.items() if name is not None}
    used = {name for roles in parts.values() for name in roles.values()}
    return Keys(parts, tuple(name for name in names if name not in used))


def _find(names: Sequence[str], role: str, part: str, chosen: str | None) -> str | None:
    if chosen is not None:
        wanted = f"{chosen}_{part}" if part else chosen
        if wanted not in names:
            raise InputError(f"There is no array {wanted!r}. {did_you_mean(wanted, names)}")
        return wanted
    candidates = [name for name in names if _plays(name, role, part)]
    if len(candidates) > 1:
        option = _OPTIONS.get(role)
        remedy = f"Say which by {option}= (--{option})" if option else "Save the file with one of them"
        raise InputError(f"{', '.join(map(repr, candidates))} could each be {_WORDS[role]}. {remedy}.")
    return candidates[0] if candidates else None


def _plays(name: str, role: str, part: str) -> bool:
    return name.lower() in {f"{word}_{part}" if part else word for word in ROLES[role]}


def looked_for() -> str:
    """The names of the cases, in words."""
    return "X, data or values (in any case), or X_train and X_test"
