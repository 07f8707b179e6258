"""What every figure shares: colours, style, and a figure as an inline `<svg>` string. Needs the extra `report`."""

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import Any

from dicot.errors import need_extra

# Okabe and Ito's palette, told apart with all common forms of colour blindness; black stands in for its pale yellow.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s")  # with 7 colours: 21 classes before a pair repeats
GREY = "#666666"

STYLE: Any = {  # matplotlib types its setting names, but is not always installed
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's fonts
    "text.parse_math": False,  # a class called "$x" is not a formula
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
}


def need_matplotlib() -> None:
    """An error where it is not installed; for those who would notice only after their work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise need_extra("matplotlib", "report", "Drawing a figure") from error


def svg(draw: Callable[[Any], None], size: tuple[float, float], label: str) -> str:
    """Draw on a fresh figure and return it as an element that can stand inside a page."""
    need_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    # Ids are hashes of what they name; salted by the label, they do not repeat between the figures of one page.
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"dicot {label}"}), warnings.catch_warnings():
        # The browser's fonts draw the text; what the measuring font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    # Counting ids (axes_1, patch_2) would repeat between the figures of one page; references use hashes only.
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label, quote=True)}"', 1)


def plain_log(axis: Any) -> None:
    """Ticks at 1, 2 and 5 of each power of ten as plain numbers: a formula would be printed letter by letter here."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def legend_text(label: object) -> str:
    """The label as a legend shows it, whatever it begins with."""
    text = str(label)
    return f" {text}" if text.startswith("_") else text  # matplotlib hides names with a leading underscore
