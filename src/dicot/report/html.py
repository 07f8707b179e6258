"""One self-contained page: no script, no font, image or style sheet from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape

from dicot.report.parts import Part
from dicot.report.tables import to_html

# Nothing may be loaded from anywhere, whatever ends up in the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1b1f24;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; font-weight: 650; margin: 0 0 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; line-height: 1.3; font-weight: 650; margin: 2.75rem 0 .75rem; }
p { max-width: 42rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.5rem; margin: 0;
  padding: .9rem 0; border: solid #d8dde3; border-width: 1px 0; font-size: .92rem; }
dt { color: #57606a; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem 1.1rem .35rem 0; text-align: right; vertical-align: top; }
th:first-child { text-align: left; }
thead th { font-weight: 600; border-bottom: 1.5px solid #57606a; vertical-align: bottom; }
tbody th { font-weight: 400; white-space: nowrap; position: sticky; left: 0; background: #fff; }
tbody tr { border-bottom: 1px solid #e6e9ed; }
td { white-space: nowrap; }
td.best { font-weight: 700; }
td.failed { color: #b00020; }
td.absent { color: #8a929a; }
td.long { white-space: normal; min-width: 14rem; }
.words, thead th.words { text-align: left; }
.banner { margin: 0 0 1.25rem; padding: .7rem 1rem; max-width: none; font-weight: 600; color: #7a1f00;
  background: #fff4e5; border: 1px solid #d55e00; border-left-width: 6px; }
.note { color: #57606a; font-size: .88rem; }
svg { display: block; max-width: 100%; height: auto; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Consolas, "Liberation Mono", monospace; }
pre { overflow-x: auto; background: #f6f8fa; padding: .8rem 1rem; }
@media (max-width: 34rem) {
  main { padding-top: 1.5rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
}
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  svg, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
}
"""


def _section(part: Part) -> str:
    pieces = [f"<h2>{escape(part.title)}</h2>"]
    pieces += [to_html(part.table)] if part.table is not None else []
    pieces += part.figures.values()
    pieces += [f'<p class="note">{escape(part.text)}</p>'] if part.text else []
    return "\n".join(["<section>", *pieces, "</section>"])


def render(title: str, parts: Sequence[Part], facts: Mapping[str, object] | None = None, banner: str = "") -> str:
    """The page: title, a warning if there is one, the facts of the run (version, seed, command ...), the parts."""
    pairs = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in (facts or {}).items())
    warning = f'<p class="banner">{escape(banner)}</p>\n' if banner else ""
    header = warning + (f"<dl>\n{pairs}\n</dl>\n" if pairs else "")
    body = "\n".join(map(_section, parts))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n{header}</header>\n{body}\n</main>\n</body>\n</html>\n"
    )
