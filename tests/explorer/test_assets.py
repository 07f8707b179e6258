"""The built page: made of web/ and nothing else, and small enough to be read by whoever must trust it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
ASSETS = ROOT / "src" / "dicot" / "explorer" / "assets"
BUILT = ("index.html", "app.js", "app.css")


def read(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_sources_give_the_committed_bytes(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("web/node_modules is missing; `make web` fills it")
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=WEB, check=True, capture_output=True, text=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(BUILT)
    for name in BUILT:
        assert (tmp_path / name).read_bytes() == (ASSETS / name).read_bytes(), f"{name} is old: run `make web`"


def test_the_page_names_one_script_and_one_style_sheet() -> None:
    page = read("index.html")
    assert re.findall(r"<script\b.*?>", page) == ['<script src="/assets/app.js" defer>']
    assert re.findall(r"<link\b.*?>", page) == ['<link rel="stylesheet" href="/assets/app.css">']
    assert not re.search(r'\sstyle="|\son\w+="', page)  # the server's policy forbids both


def test_the_script_can_stand_inside_a_page_and_needs_no_eval() -> None:
    script = read("app.js")
    assert "</script" not in script.lower() and "<!--" not in script
    assert not re.search(r"\beval\(|\bFunction\(|\bimport\(", script)


def test_nothing_is_fetched_from_elsewhere() -> None:
    namespaces = {"http://www.w3.org/2000/svg"}
    for name in BUILT:
        assert set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)]*", read(name))) <= namespaces
    assert "@import" not in read("app.css") and "url(" not in read("app.css")
