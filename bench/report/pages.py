"""Reports as files: a page, the same as Markdown, and the figures; file names that stay in their folder."""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from dicot.core.storage import write_atomic
from dicot.judge.report.page import Facts, Part, drawn, need_packages, render, split_opening
from dicot.judge.report.tables import BEST, TIE, Table

LONGEST = 80  # bytes of a slug, so that a prefix and a suffix have room in the 255 of a file name
MARKDOWN = str.maketrans({"\\": "\\\\", "|": "\\|", "&": "&amp;", "<": "&lt;", "\n": " "})


def write_pages(folder: Path, title: str, parts: Iterable[Part], facts: Facts, banner: str = "") -> list[Path]:
    """Write report.html, report.md and the figures as .svg into the folder; return the paths."""
    need_packages()
    shown = drawn(parts)
    texts = {"report.html": render(title, shown, facts, banner), "report.md": to_document(title, facts, banner, shown)}
    texts |= {f"{name}.svg": svg for part in shown for name, svg in part.drawings.items()}
    for name, text in texts.items():
        write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def to_document(title: str, facts: Facts, banner: str, parts: Sequence[Part]) -> str:
    """Write Markdown; figures are files beside it."""
    opening, rest = split_opening(parts)
    lines = [f"# {markdown_text(title)}", ""]
    if banner:
        lines += [f"> **{markdown_text(banner)}**", ""]
    lines += paragraphs(opening)
    lines += [f"- {name}: {markdown_text(str(value))}" for name, value in facts.items()]
    for part in rest:
        lines += part_lines(part)
    return "\n".join(lines).rstrip() + "\n"


def paragraphs(texts: Iterable[str]) -> list[str]:
    """Put an empty line behind each text."""
    return [line for text in texts for line in (markdown_text(text), "")]


def part_lines(part: Part) -> list[str]:
    lines = [""]
    if part.title:
        lines += [f"{'#' * part.level} {markdown_text(part.title)}", ""]
    lines += paragraphs(part.lead)
    if part.table is not None:
        lines.append(to_markdown(part.table))
    for name in part.drawings:
        lines += [f"![{markdown_text(part.title)}]({name}.svg)", ""]
    if part.text:
        lines.append(markdown_text(part.text))
    return lines


def slug(text: str) -> str:
    """Letters, digits, - and _ of a text, never empty: a file name that stays in its folder."""
    plain = "".join(c if c.isalnum() or c in "-_" else " " for c in unicodedata.normalize("NFKC", text))
    words = [word.strip("-") for word in plain.split()]
    cut = "-".join(filter(None, words)).encode()[:LONGEST].decode(errors="ignore")
    return cut.strip("-") or "unnamed"


def folder_name(text: str) -> str:
    """The text itself where it can be a folder's name, otherwise its slug and a hash, which no other text has."""
    plain = slug(text)
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def markdown_text(text: str) -> str:
    """Escape a text for Markdown, also inside a table."""
    return text.translate(MARKDOWN)


def to_markdown(table: Table) -> str:
    """Write a pipe table followed by the note."""

    def shown(text: str, look: str) -> str:
        text, tie = markdown_text(text.removesuffix(TIE)), TIE if text.endswith(TIE) else ""
        return f"**{text}**{tie}" if look == BEST else text + tie

    body = [[markdown_text(name), *(shown(*cell) for cell in row)] for name, row in table.rows()]
    head = [[table.corner, *map(markdown_text, table.columns)], ["---", *["---:"] * len(table.columns)]]
    return "\n".join([*(f"| {' | '.join(row)} |" for row in head + body), "", markdown_text(table.note), ""])
