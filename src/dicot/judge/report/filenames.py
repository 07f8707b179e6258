"""File names made of what data, suites and contenders are called: whatever that is, they stay in their folder."""

import hashlib
import unicodedata
from collections.abc import Iterable

LONGEST = 80  # bytes, so that a prefix and a suffix have room in the 255 of a file name
UNNAMED = "unnamed"


def slug(text: str) -> str:
    """Letters, digits, - and _ of a text, never empty. Different texts may have the same: see the other two."""
    plain = "".join(c if c.isalnum() or c in "-_" else " " for c in unicodedata.normalize("NFKC", text))
    words = [word.strip("-") for word in plain.split()]
    cut = "-".join(filter(None, words)).encode()[:LONGEST].decode(errors="ignore")
    return cut.strip("-") or UNNAMED


def folder_name(text: str) -> str:
    """The text itself where it can be a folder's name, otherwise its slug and a hash, which no other text has."""
    plain = slug(text)
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def distinct(names: Iterable[str]) -> list[str]:
    """The names, with a number where one was there before; capitals alone make no other file everywhere."""
    out: list[str] = []
    taken: set[str] = set()
    for name in names:
        free, number = name, 1
        while free.lower() in taken:
            number += 1
            free = f"{name}-{number}"
        taken.add(free.lower())
        out.append(free)
    return out
