"""The page: one template, one style sheet, and a second one for a page that begins with a verdict."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dicot.core.errors import need_extra
from dicot.judge.report.parts import Part
from dicot.judge.report.tables import LONG_TEXT


class Opening(NamedTuple):
    """What a page that decides something begins with: a sentence, further ones, and (why, command) to go on with."""

    sentence: str
    more: tuple[str, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()


def render(
    title: str,
    parts: Sequence[Part],
    facts: Mapping[str, object] | None = None,
    banner: str = "",
    opening: Opening | None = None,
) -> str:
    """Make the page: title, a warning if there is one, the facts of the run (version, seed, command ...), the parts.

    A page with an opening begins with that, and its facts come last.
    """
    need_jinja2()
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("dicot.judge.report"), autoescape=True)
    environment.filters["code"] = _code
    page = environment.get_template("page.html")
    text: str = page.render(
        title=title, parts=parts, facts=facts or {}, banner=banner, opening=opening, long_text=LONG_TEXT
    )
    return text


def _code(text: str) -> str:
    """Show what stands between two backticks as code, everything as the text that it is."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def need_jinja2() -> None:
    """Raise an error where it is not installed, before any work is done for a page."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise need_extra("jinja2", "report", "A page") from error
