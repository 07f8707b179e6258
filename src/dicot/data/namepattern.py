"""NamePattern: what the parts of a recording's name mean, as in "{activity}_{subject}_{trial}"."""

import re
from collections.abc import Collection
from string import ascii_lowercase
from typing import final

from dicot.core.errors import InputError

_FIELD = re.compile(r"\{([^{}:/]*)(?::([1-9]\d{0,2}))?\}")
_SEPARATORS = re.compile(r"([-_. /])")
_WORD = re.compile(r"[A-Za-z]{3,}")


@final
class NamePattern:
    """Fields in braces with text between them; {kind:1} is one character long.

    A pattern with slashes is compared with the file's name and as many folders before it, another with the name alone.
    Names are without suffix.
    """

    def __init__(self, text: str) -> None:
        pieces = _FIELD.split(text)  # text, field, width, text, field, width ... text
        self.text, self.fields = text, tuple(pieces[1::3])
        braces = any(brace in part for part in pieces[::3] for brace in "{}")
        if braces or not self.fields or not all(self.fields) or len(set(self.fields)) < len(self.fields):
            example = "{activity}_{subject}_{trial}"
            raise InputError(f"{text!r} must name its fields in braces, each by a name of its own, as in {example!r}.")
        widths = pieces[2::3]
        for number, between in enumerate(pieces[3:-1:3]):
            if not between and widths[number] is widths[number + 1] is None:
                field = self.fields[number]
                raise InputError(f"Nothing tells where {{{field}}} ends in {text!r}. Give its width: {{{field}:1}}.")
        self._forms = []
        for lazy in ("", "?"):  # a name that both read alike has one meaning
            fields = [f"([^/]{{{width}}})" if width else f"([^/]+{lazy})" for width in widths]
            pairs = zip(map(re.escape, pieces[::3]), [*fields, ""], strict=True)
            self._forms.append(re.compile("".join(text + field for text, field in pairs)))

    def fields_of(self, name: str) -> dict[str, str] | None:
        """Return the fields of a recording's name, which is its path without suffix; None where it does not fit."""
        tail = "/".join(name.split("/")[-1 - self.text.count("/") :])
        first, other = (form.fullmatch(tail) for form in self._forms)
        if first is None or other is None:
            return None
        if first.groups() != other.groups():
            ways = (", ".join(map("=".join, zip(self.fields, one.groups(), strict=True))) for one in (other, first))
            said = f"{name!r} can be read in two ways by {self.text!r}: {' or '.join(ways)}."
            raise InputError(f"{said} Say how many characters a field has, as in {{kind:4}}, or use a table (--table).")
        return dict(zip(self.fields, first.groups(), strict=True))


def suggest_pattern(names: Collection[str]) -> str | None:
    """Return the pattern that all names have in common, where some part of them comes again and again."""
    split = [_SEPARATORS.split(name) for name in names]  # part, separator, part ...
    if len({tuple(one[1::2]) for one in split}) != 1 or any(brace in name for name in names for brace in "{}"):
        return None
    columns = list(zip(*split, strict=True))
    counts = [len(set(column)) for column in columns]
    if not any(1 < count < len(split) for count in counts) or len(columns) > len(ascii_lowercase):
        return None
    out, letters = "", iter(ascii_lowercase)
    for column, count in zip(columns, counts, strict=True):
        words = {found[0] if (found := _WORD.match(part)) else "" for part in column}  # exp01, exp02 ... are called exp
        name = words.pop() if len(words) == 1 else ""
        out += column[0] if count == 1 else f"{{{name if name and name not in out else next(letters)}}}"
    return out
