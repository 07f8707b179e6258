"""The result as files: Markdown with the command that made it, CSV with every number, and the figures."""

from datetime import date
from pathlib import Path

from dicot.report.tables import to_markdown
from dicot.speed.benchmark import Result
from dicot.speed.sections import to_csv
from dicot.storage import write_atomic


def write_result(folder: Path, result: Result, command: str) -> list[Path]:
    """speed-KIND.md, speed-KIND.csv and speed-KIND-*.svg; the paths that were written."""
    stem = f"speed-{result.kind}"
    files = {f"{stem}.csv": to_csv(result.sections)}
    lines = [f"# Speed on {result.machine}", "", f"`{command}`, {date.today().isoformat()}."]
    if result.ratios:
        lines.append(f"Smallest ratio of a training step to the plain loop's: **{min(result.ratios):.2f}**.")
    lines.append("")
    for section in result.sections:
        lines += [f"## {section.title}", "", to_markdown(section.table())]
        for name, svg in section.figures.items():
            files[f"{stem}-{name}.svg"] = svg
            lines += [f"![{section.title}, {name}]({stem}-{name}.svg)", ""]
    files[f"{stem}.md"] = "\n".join(lines).rstrip() + "\n"
    for name, text in files.items():
        write_atomic(folder / name, text.encode())
    return [folder / name for name in sorted(files)]
