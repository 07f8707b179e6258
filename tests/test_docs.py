"""The documentation is run: every python block, and every line that calls `dicot` or the bench, in order."""

import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
FENCE = re.compile(r"^\s*(`{3,})(.*)$")
PROMISE = re.compile(r"\bprint\(.*\)  # (\d+\.\d+(?:, \d+\.\d+)*)")
TOLERANCE = 0.05  # what the rounding of another machine may do to a score between 0 and 1
NO_TEST = re.compile(r"^\s*<!--\s*no-test\b:?\s*(.*?)\s*-->\s*$")
BENCH = "python -m bench "
NEEDS = re.compile(r"^\s*<!--\s*needs:\s*(\w+)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: language, text, the line of its fence, and why it is not run (None: it is run)."""

    page: str
    line: int
    language: str
    text: str
    no_test: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    """Find all fenced blocks.

    A `<!-- no-test: reason -->` counts for the block after it, blank lines between are fine; so does a
    `<!-- needs: package -->`, which is a reason where the package is not installed.
    """
    blocks: list[Block] = []
    lines = enumerate(text.splitlines(), start=1)
    reason: str | None = None
    for number, line in lines:
        if mark := NO_TEST.match(line):
            reason = mark[1]
        elif need := NEEDS.match(line):
            reason = None if find_spec(need[1]) else f"{need[1]} is not installed"
        elif fence := FENCE.match(line):
            body = []
            for _, inner in lines:
                if inner.strip() == fence[1]:
                    break
                body.append(inner)
            else:
                pytest.fail(f"{page}:{number}: the block is never closed")
            language = fence[2].strip().partition(" ")[0]
            blocks.append(Block(page, number, language, textwrap.dedent("\n".join(body)), reason))
            reason = None
        elif line.strip():
            reason = None
    return blocks


def commands_in(block: Block) -> list[str]:
    """The lines of a console block that call us, with or without `$ `; other programs and printed output are left."""
    joined = block.text.replace("\\\n", " ")
    lines = [line.strip().removeprefix("$ ").strip() for line in joined.splitlines()]
    return [line for line in lines if line == "dicot" or line.startswith(("dicot ", BENCH))]


def promised_numbers(text: str) -> dict[int, list[float]]:
    """Line -> the numbers that its comment says are printed there: `print(score)  # 0.86, 0.91: why`."""
    found = ((number, PROMISE.search(line)) for number, line in enumerate(text.splitlines(), start=1))
    return {number: [float(value) for value in match[1].split(",")] for number, match in found if match}


def run_python(block: Block, namespace: dict[str, object]) -> None:
    padded = "\n" * block.line + block.text  # so that a traceback shows the line of the page
    promised = promised_numbers(padded)

    def compare(*values: object) -> None:
        line = sys._getframe(1).f_lineno
        if line in promised:
            wanted, got = promised[line].pop(0), float(str(values[-1]))
            assert abs(got - wanted) <= TOLERANCE, f"line {line} promises {wanted}, got {got}"

    namespace["print"] = compare
    try:
        exec(compile(padded, block.page, "exec"), namespace)
    except Exception as error:
        pytest.fail(f"{block}: the python block raised {type(error).__name__}: {error}")
    assert not any(promised.values()), f"{block}: these numbers were not printed: {promised}"


def run_command(block: Block, command: str) -> None:
    from bench.__main__ import app as bench_app
    from dicot.cli import app as dicot_app

    words = shlex.split(command, comments=True)
    operators = {"|", ">", ">>", "<", "&&", "||", ";", "&"} & set(words)
    assert not operators, f"{block}: `{command}` needs a shell; write plain commands or mark the block no-test"
    app, words = (bench_app, words[3:]) if command.startswith(BENCH) else (dicot_app, words[1:])
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (
        f"{block}: `{command}` ended with {result.exit_code}, {result.exception!r}\n{result.output}"
    )


def read_blocks(path: Path) -> list[Block]:
    return blocks_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def registries() -> Iterator[None]:
    """What a page registers is gone after it: other tests go through the same registries."""
    from dicot.data.datasets import DATASETS
    from dicot.judge.protocols import PROTOCOLS
    from dicot.methods import METHODS
    from dicot.model.embedding import POOLINGS
    from dicot.model.presets import PRESETS
    from dicot.nets.encoders import ENCODERS

    open_ones: list[dict[str, Any]] = [ENCODERS, METHODS, POOLINGS, PRESETS, PROTOCOLS]
    before, sets = [dict(registry) for registry in open_ones], set(DATASETS)
    yield
    for registry, entries in zip(open_ones, before, strict=True):
        registry.clear()
        registry.update(entries)
    for name in set(DATASETS) - sets:
        del DATASETS[name]


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize(
    "path", [PAGES[0], *(pytest.param(page, marks=pytest.mark.slow) for page in PAGES[1:])], ids=name
)
def test_page_runs_as_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as a script in this folder would find what lies beside it
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in read_blocks(path):
        if block.no_test is not None:
            assert block.no_test, f"{block}: say why the block is not run: <!-- no-test: reason -->"
        elif block.language == "python":
            run_python(block, namespace)
        elif block.language in {"console", "bash"}:
            for command in commands_in(block):
                run_command(block, command)


SKIPPED = [block for path in PAGES for block in read_blocks(path) if block.no_test is not None]


@pytest.mark.parametrize("block", SKIPPED, ids=str)
def test_block_marked_no_test(block: Block):
    """Lists what is not run, with the reason: `pytest -rs tests/test_docs.py`."""
    pytest.skip(f"{block}: {block.no_test}")


def test_readme_shows_code_that_is_run():
    run = [block for block in read_blocks(ROOT / "README.md") if block.no_test is None]
    assert any(block.language == "python" for block in run), "README.md has no python block that is run"
    assert any(commands_in(block) for block in run), "README.md has no `dicot` command that is run"


@pytest.mark.parametrize("path", LINKED, ids=name)
def test_relative_links_lead_somewhere(path: Path):
    prose = re.sub(r"^\s*```.*?^\s*```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", prose)]
    broken = [t for t in targets if t and not re.match(r"[a-z]+:", t) and not (path.parent / t).exists()]
    assert not broken, f"{name(path)} links to what does not exist: {broken}"


def test_the_site_has_every_file_that_a_page_of_it_links_to():
    """`mkdocs build --strict` lets a link to an excluded file pass, and the site answers it with 404."""
    listed = re.search(r"exclude_docs: \|\n((?:  .*\n)+)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))[1]
    left_out = {file.resolve() for pattern in listed.split() for file in (ROOT / "docs").rglob(pattern.lstrip("/"))}
    assert left_out
    for page in (ROOT / "docs").rglob("*.md"):
        links = re.findall(r"\]\(([^)#: ]+)", page.read_text(encoding="utf-8"))
        assert not left_out & {(page.parent / link).resolve() for link in links}, page


def script(name: str) -> Any:
    """A file of docs/ that makes a page or picture, as a module."""
    spec = spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_page_is_what_the_docstrings_say():
    api = script("api")
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == api.page(), "run `python docs/api.py`"


def test_the_picture_of_the_views_has_a_panel_for_every_part(tmp_path: Path):
    from dataclasses import fields

    from dicot.nets.views import Distortion

    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    views = script("views")
    views.main(tmp_path / "views.svg")
    committed = (ROOT / "docs" / "views.svg").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    for title in views.chains():
        assert f">{title}</text>" in (tmp_path / "views.svg").read_text(encoding="utf-8")
        assert f">{title}</text>" in committed, "run `python docs/views.py`"
    for field in fields(Distortion):
        value = getattr(Distortion(), field.name)
        default = " to ".join(map(str, value)) if isinstance(value, tuple) else f"{value:g}"
        assert f"| `{field.name}` | {default} |" in page, field.name


def test_divergence_ids_exist_and_are_numbered_in_order():
    table = (ROOT / "docs" / "divergences.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (D-\d+) \|", table, flags=re.MULTILINE)
    assert listed == [f"D-{number:02}" for number in range(1, len(listed) + 1)], "docs/divergences.md: ids out of order"
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            unknown = set(re.findall(r"\bD-\d{2,}\b", line)) - set(listed)
            assert not unknown, f"{name(path)}:{number}: {sorted(unknown)} is not a row of docs/divergences.md"


def test_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for page, text in {
        "src/dicot/core/__init__.py": f'__version__ = "{version}"',
        "CITATION.cff": f"\nversion: {version}\n",
        "CHANGELOG.md": f"## [{version}]",
    }.items():
        assert text in (ROOT / page).read_text(encoding="utf-8"), f"{page} does not carry version {version}"


def test_numbers_in_comments_are_held_to():
    run_python(Block("p.md", 7, "python", "for x in (1, 2):\n    print('x', 0.4 * x)  # 0.42, 0.78: fine", None), {})
    for text in ("print(0.57)  # 0.86", "print(0.86)  # 0.86, 0.89"):
        with pytest.raises((AssertionError, pytest.fail.Exception), match="promises|not printed"):
            run_python(Block("p.md", 7, "python", text, None), {})


def test_the_questions_are_about_errors_that_exist():
    """The headings of docs/faq.md are what somebody searches for, word by word as the source has them."""
    page = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", page, flags=re.MULTILINE)
    assert headings
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    joined = re.sub(r'"\s*\n\s*f?["\x27]', "", source)  # a message goes on in the next line
    assert [heading for heading in headings if heading not in joined] == []
