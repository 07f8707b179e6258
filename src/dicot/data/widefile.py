"""CSV files with one case per row: is the first row a header, and which columns are time steps."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from dicot.core.errors import InputError, did_you_mean
from dicot.data.csvfile import Sheet, check_names, to_names
from dicot.data.policies import Array
from dicot.data.texts import decimal_comma, is_number, is_value

_ENDS = {"first": 0, "last": -1}
_RAMP = 7  # steps that are even by chance are fewer
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def read_rows(
    sheet: Sheet,
    label: str | None = None,
    group: str | None = None,
    ignore: Sequence[str] | None = None,
    header: bool | None = None,
) -> tuple[Array, Array | None, Array | None, str]:
    """Return cases (N, 1, T), labels, groups, and what was read in words.

    `label`, `group` and those to `ignore` are names of columns, or "first" or "last". Empty cells are missing values,
    and after the last value of a row mean a shorter case. Where `header` is None, the first row is taken for names if a
    column is named or all its cells are text, and for a case if all are numbers; anything in between is refused.
    """
    width = len(sheet.rows[0])
    given = [c for c in (label, group, *(ignore or ())) if c is not None]
    by_name = [c for c in given if c not in _ENDS]
    if header is None:
        ends = {_ENDS[c] % width for c in given if c in _ENDS}
        header = bool(by_name) or _has_header([cell for i, cell in enumerate(sheet.rows[0]) if i not in ends])
    names = sheet.rows[0] if header else []
    if lost := [c for c in by_name if c not in names]:
        if not header:
            raise InputError(f"Column {lost[0]!r} needs a row of names. Read the file with header=True.")
        known = did_you_mean(lost[0], names)
        raise InputError(f"There is no column {lost[0]!r}. {known if len(known) < 200 else f'It has {brief(names)}.'}")
    if header:
        check_names(names)
    places = {c: _ENDS[c] % width if c in _ENDS else names.index(c) for c in given}
    values = [i for i in range(width) if i not in places.values()]
    if torn := [c for c in (label, group) if c is not None and places[c] in {places[d] for d in ignore or ()}]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of ignore.")
    if not values:
        raise InputError("No column of values is left beside label, group and those to ignore. Leave one of them out.")
    if header:
        _check_steps([names[i] for i in values])
    frame = sheet.frame(header, [places[c] for c in (label, group) if c is not None])
    if not len(frame):
        raise InputError("The file has no case below its header row.")
    kinds = list(frame.dtypes)
    for i in values:
        if kinds[i].kind not in "iuf":
            row, cell = next((row, str(cell)) for row, cell in enumerate(frame[i]) if not is_value(str(cell)))
            raise InputError(
                f"{sheet.line(row + header).capitalize()}: could not convert {cell!r} to a number. "
                + (
                    decimal_comma(cell)
                    or "If the column is not one of values, name it as label, group or ignore;"
                    " it may be the first or the last. Cells are separated by commas, semicolons or tabs."
                )
            )
    cases = frame[values].to_numpy(np.float64)
    y, groups = (None if c is None else to_names(frame[places[c]]) for c in (label, group))
    roles = {
        role: (c, found[0])
        for role, c, found in (("label", label, y), ("group", group, groups))
        if c and found is not None
    }
    first = [brief([f"{v:g}" for v in cases[0]], " "), *(f"{role} {value}" for role, (_, value) in roles.items())]
    about = [
        f"header: {'yes' if header else 'no'}",
        f"{len(cases)} cases of {len(values)} time steps"
        + (f" ({brief([names[i] for i in values])})" if header else ""),
        *(f"{role}: {c}" for role, (c, _) in roles.items()),
        *([f"ignored: {', '.join(ignore)}"] if ignore else []),
        f"first case: {', '.join(first)}",
    ]
    return cases[:, None], y, groups, "; ".join(about)


def _has_header(cells: list[str]) -> bool:
    """Tell whether the first row holds names: all are text, and all differ. A row that may be either is refused."""
    text = [cell for cell in cells if not is_value(cell)]
    if text and len(set(text)) == len(cells):
        return True
    # The columns of a data frame without names are called 0, 1, 2 ...; times rise evenly.
    numbers = np.array([float(cell) if is_number(cell) else np.nan for cell in cells])
    numbers = numbers[1:] if cells[:1] == [""] else numbers
    steps = np.diff(numbers)
    counts = len(steps) > 0 and numbers[0] == 0 and bool((steps == 1).all())
    ramp = len(steps) >= _RAMP and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0)
    if not text and not counts and not ramp:
        return False
    raise InputError(
        f"It is not clear whether the first row holds names or a case: {brief(cells)}. Say header=True or "
        "header=False, and name a column that is not one of values as label, group or ignore "
        "by its name, first or last."
    )


def _check_steps(names: list[str]) -> None:
    """Refuse columns that are called differently where the others are numbered: an id is not a time step."""
    forms = [_NUMBER.sub("#", name) for name in names]
    numbered = Counter(form for form in forms if "#" in form)
    usual, count = numbered.most_common(1)[0] if numbered else ("", 0)
    odd = [name for name, form in zip(names, forms, strict=True) if form != usual]
    if count > 1 and odd:
        raise InputError(
            f"The other columns are called like time steps ({names[forms.index(usual)]} ...), these are not: "
            f"{brief(odd)}. Name each as label, group or ignore, or rename it if it is a "
            "time step. Several channels need a long table."
        )


def brief(cells: Sequence[str], comma: str = ", ") -> str:
    """Write cells into a sentence, of many the first and the last."""
    shown = [cell or "(empty)" for cell in (cells if len(cells) < 6 else [*cells[:3], "...", cells[-1]])]
    return comma.join(shown)
