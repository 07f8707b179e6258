"""Wide tables: one row per case of one channel, one column per time step."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dicot.data.csvfile import Row, Sheet, check_names, is_value, to_names, to_numbers
from dicot.data.policies import Array
from dicot.errors import InputError, did_you_mean

_ENDS = {"first": 0, "last": -1}
_RAMP = 8  # values that rise evenly by chance are fewer
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def read_rows(
    sheet: Sheet,
    label: str | None = None,
    group: str | None = None,
    ignore: Sequence[str] = (),
    header: bool | None = None,
) -> tuple[list[Array], Array | None, Array | None, str]:
    """(cases, labels, groups, what was read in words).

    `label`, `group` and those to `ignore` are names of columns, or "first" or "last". Empty cells are missing values,
    and after the last value of a row mean a shorter case. Where `header` is None, the first row is taken for names if a
    column is named or all its cells are text, and for a case if all are numbers; anything in between is refused.
    """
    given = [c for c in (label, group, *ignore) if c is not None]
    by_name = [c for c in given if c not in _ENDS]
    ends = {_ENDS[c] % len(sheet.rows[0]) for c in given if c in _ENDS}
    if header is None:
        header = bool(by_name) or _has_header(sheet.rows, ends)
    names, rows, lines = (sheet.rows[0], sheet.rows[1:], sheet.lines[1:]) if header else ([], sheet.rows, sheet.lines)
    lost = [c for c in by_name if c not in names]
    if lost and not header:
        raise InputError(f"Column {lost[0]!r} needs a row of names. Read the file with header=True (--header).")
    if lost:
        raise InputError(" ".join(f"There is no column {c!r}. {_suggestion(c, names)}" for c in lost))
    if header:
        check_names(names)
    if not rows:
        raise InputError("The file holds no case below its header row.")
    places = {c: _ENDS[c] % len(rows[0]) if c in _ENDS else names.index(c) for c in given}
    values = [i for i in range(len(rows[0])) if i not in places.values()]
    _check_roles(label, group, ignore, places, values)
    if header:
        _check_steps([names[i] for i in values])
    cases = [to_numbers([row[i] for i in values], line) for line, row in zip(lines, rows, strict=True)]
    y, groups = (None if c is None else to_names([row[places[c]] for row in rows]) for c in (label, group))
    roles = {role: c for role, c in (("label", label), ("group", group)) if c is not None}
    first = [_brief([f"{v:g}" for v in cases[0]], " "), *(f"{role} {rows[0][places[c]]}" for role, c in roles.items())]
    about = [
        f"header: {'yes' if header else 'no'}",
        f"{len(rows)} cases of {len(values)} time steps"
        + (f" ({_brief([names[i] for i in values])})" if header else ""),
        *(f"{role}: {c}" for role, c in roles.items()),
        *([f"ignored: {', '.join(ignore)}"] if ignore else []),
        f"first case: {', '.join(first)}",
    ]
    return cases, y, groups, "; ".join(about)


def _has_header(rows: list[Row], ends: set[int]) -> bool:
    """Whether the first row holds names, as far as its own cells and the other rows tell without a doubt."""
    cells, *others = ([cell for i, cell in enumerate(row) if i not in ends] for row in rows)
    text = [cell for cell in cells if not is_value(cell)]
    if text and len(set(text)) == len(cells):
        return True
    if text and len(text) == len(cells):
        why = "all cells are text, but not all differ"
    elif text:
        why = f"{_brief(text)} cannot be read as a number, other cells can"
    elif _counts(cells):
        why = "it may number the columns or be a case of small numbers"
    elif others and _is_ramp(cells) and not any(map(_is_ramp, others)):
        why = "it rises evenly like times, and no other row does"
    else:
        return False
    raise InputError(
        f"It is not clear whether the first row holds names or a case: {_brief(rows[0])} ({why}). Say header=True or "
        "header=False (--header or --no-header), and name a column that holds no values as label, group or ignore "
        "(--label, --group, --ignore): by its name, first or last."
    )


def _counts(cells: Row) -> bool:
    cells = cells[1:] if cells[:1] == [""] else cells  # the nameless index of a data frame
    return len(cells) > 1 and cells == [str(i) for i in range(len(cells))]


def _is_ramp(cells: Row) -> bool:
    if len(cells) < _RAMP or not all(is_value(cell) for cell in cells):
        return False
    steps = np.diff(to_numbers(cells, 0))
    return bool(steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0))


def _check_roles(
    label: str | None, group: str | None, ignore: Sequence[str], places: dict[str, int], values: list[int]
) -> None:
    ignored = {places[c] for c in ignore}
    if torn := [c for c in (label, group) if c is not None and places[c] in ignored]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of ignore (--ignore).")
    if not values:
        raise InputError("No column of values is left beside label, group and those to ignore. Leave one of them out.")


def _check_steps(names: Row) -> None:
    """Refuse columns that are called differently where the others are numbered: an id is not a time step."""
    forms = [_NUMBER.sub("#", name) for name in names]
    usual, count = max(
        Counter(form for form in forms if "#" in form).items(), key=lambda item: item[1], default=("", 0)
    )
    odd = [name for name, form in zip(names, forms, strict=True) if form != usual]
    if count > 1 and odd:
        raise InputError(
            f"The other columns are called like time steps ({names[forms.index(usual)]} ...), these are not: "
            f"{_brief(odd)}. Name each as label, group or ignore (--label, --group, --ignore), or rename it if it is a "
            "time step. Several channels need a long table."
        )


def _suggestion(column: str, names: Row) -> str:
    said = did_you_mean(column, names)
    return said if len(said) < 200 else f"The first row holds {_brief(names)}."


def _brief(cells: Row, comma: str = ", ") -> str:
    shown = [cell or "(empty)" for cell in (cells if len(cells) < 6 else [*cells[:3], "...", cells[-1]])]
    return comma.join(shown)
