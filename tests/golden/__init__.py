"""Float64 vectors computed with the original authors' code, and one checker per kind of vector file.

A file KIND.py here has a function check_KIND, which recomputes the values of KIND.npz and reports each comparison.
"""

from importlib import import_module
from pathlib import Path

NO_KIND = ("__init__", "__main__", "compare")
STEMS = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NO_KIND)
KINDS = {stem: getattr(import_module(f"tests.golden.{stem}"), f"check_{stem}") for stem in STEMS}
