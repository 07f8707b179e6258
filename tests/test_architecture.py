"""The rules of the house, checked on the source text alone: nothing of the package is imported here."""

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dicot"
SOURCES = sorted(PACKAGE.rglob("*.py"))
EVERYTHING = SOURCES + [path for folder in ("tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]

# Which part of the package may import which: the picture in docs/architecture.md as a table. A part is a file or a
# folder directly under src/dicot. Imports inside functions and under TYPE_CHECKING obey it too.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "storage": {"errors"},
    "progress": set(),
    "data": {"errors"},
    "gpu": {"data", "errors"},
    "datasets": {"data", "storage", "errors"},
    "views": {"errors"},
    "losses": {"errors"},
    "encoders": {"storage", "errors"},
    "methods": {"encoders", "views", "losses", "data", "errors"},
    "train": {"methods", "encoders", "data", "gpu", "storage", "errors"},
    "controls": {"encoders", "data", "gpu"},
    "embedding": {"encoders", "gpu", "data", "errors"},
    "pretrained": {"encoders", "storage", "errors"},
    "fitting": {"gpu", "embedding", "encoders", "methods", "pretrained", "progress", "train", "data", "errors"},
    "estimator": {
        "fitting",
        "controls",
        "embedding",
        "encoders",
        "methods",
        "pretrained",
        "train",
        "data",
        "errors",
    },
    "classifier": {"fitting", "estimator", "encoders", "methods", "train", "data", "errors"},
    "runs": {"estimator", "pretrained", "storage", "train", "data", "errors"},
    "vectors": {"data", "storage", "errors"},
    "classical": {"errors"},
    "protocols": {"errors"},
    "report": {"bench", "datasets", "progress", "protocols", "storage", "data", "errors"},
    "evaluation": {
        "progress",
        "estimator",
        "controls",
        "classical",
        "datasets",
        "methods",
        "protocols",
        "data",
        "errors",
    },
}
LAYERS["bench"] = set(LAYERS) - {"report", "runs", "vectors", "pretrained"}
LAYERS["speed"] = set(LAYERS)  # a benchmark looks at everything
LAYERS["cli"] = set(LAYERS) | {"__init__"}
LAYERS["__init__"] = set(LAYERS) - {"__init__"}
LAYERS["__main__"] = {"cli"}
TORCH_FREE = {"errors", "storage", "progress", "data", "datasets", "vectors", "classical", "protocols", "report"}
TORCH_FREE |= {"bench"}
HEAVY = {"torch", "sklearn", "pandas", "matplotlib", "aeon", "safetensors.torch"}  # seconds each to import
METHOD_NAMES = {"catt", "ts2vec", "tnc", "tstcc", "tfc", "infots", "simmtm"}  # "soft" and "cost" are also plain words
METHOD_CLASSES = {"DiCOT", "CaTT", "TS2Vec", "Soft", "TNC", "TSTCC", "TFC", "CoST", "InfoTS", "SimMTM", "Supervised"}
DATA_SETS = {"HARTH", "PAMAP2", "WISDM2", "SKODA", "SLEEP", "ECG", "GunPoint", "OSULeaf"}
NAMELESS = ("train/", "protocols/", "embedding.py", "controls.py", "bench/run.py", "bench/fits.py", "bench/workers.py")
PICKLE = re.compile(r"\b(pickle|dill|joblib)\b")
PROPER_NAMES_WITH_DIGIT = {"ts2vec", "pamap2", "wisdm2", "wisdm2019"}


def short(path: Path) -> str:
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(nodes: Iterator[ast.AST], path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import among the nodes; `from a import b` gives a.b, relative ones are resolved."""
    here = ("dicot", *path.relative_to(PACKAGE).parent.parts)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)


def parts_used(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """(line, part of the package) of every import of the package; `from dicot import __version__` is free to all."""
    for line, name in imported(ast.walk(tree), path):
        root, _, rest = name.partition(".")
        if root == "dicot" and rest != "__version__":
            first = rest.partition(".")[0]
            is_part = first in LAYERS or (PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").exists()
            yield line, first if first and is_part else "__init__"


def at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not in functions, not under `if TYPE_CHECKING`."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_import(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from at_import([child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)])


def names_in(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """(line, name, is a string) of all string constants, identifiers and imported names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value, True
        elif isinstance(node, ast.Name | ast.Attribute):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr, False
        elif isinstance(node, ast.Import | ast.ImportFrom):
            dotted = ".".join([getattr(node, "module", None) or "", *(alias.name for alias in node.names)])
            yield from ((node.lineno, word, False) for word in dotted.split("."))


def method_names(tree: ast.Module) -> list[str]:
    known = METHOD_CLASSES | METHOD_NAMES
    return [f"line {n}: {name}" for n, name, text in names_in(tree) if name in known or (text and name == "dicot")]


def data_set_names(tree: ast.Module) -> list[str]:
    folded = {name.lower() for name in DATA_SETS}  # strings in any case; identifiers exactly, because of time.sleep
    hits = ((n, name) for n, name, text in names_in(tree) if name in DATA_SETS or (text and name.lower() in folded))
    return [f"line {n}: {name}" for n, name in hits]


def unsafe(tree: ast.Module, *, may_print: bool) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and not may_print:
            found.append(f"line {node.lineno}: print(); only cli/ talks to the terminal, through typer")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"line {node.lineno}: bare except; name the exceptions")
        elif isinstance(node, ast.Import | ast.ImportFrom) and PICKLE.search(ast.unparse(node)):
            found.append(f"line {node.lineno}: pickle; loading it runs foreign code, use safetensors, npz or json")
        elif isinstance(node, ast.keyword) and ast.unparse(node) in {"allow_pickle=True", "weights_only=False"}:
            found.append(f"line {node.lineno}: {ast.unparse(node)}; loading pickle runs foreign code")
    return found


def bad_file_name(path: Path) -> bool:
    stem = path.stem.removeprefix("test_")
    words = set(stem.lower().strip("_").split("_"))
    numbered = stem[-1].isdigit() and stem not in PROPER_NAMES_WITH_DIGIT
    return numbered or bool(words & {"utils", "util", "helpers", "helper", "common", "misc"})


def plain(node: ast.AST) -> str:
    """The last word of a base class or decorator: `abc.ABC` is ABC, `Base[int]` is Base."""
    return ast.unparse(node).partition("[")[0].rpartition(".")[2]


def is_abstract(cls: ast.ClassDef) -> bool:
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    marks = [*cls.bases, *(keyword.value for keyword in cls.keywords), *(d for m in methods for d in m.decorator_list)]
    return bool({plain(mark) for mark in marks} & {"ABC", "ABCMeta", "abstractmethod", "TypedDict"})


def subclassed_concrete(classes: list[ast.ClassDef]) -> list[str]:
    concrete = {cls.name for cls in classes if not is_abstract(cls) and not cls.name.endswith(("Error", "Warning"))}
    pairs = [(cls.name, plain(base)) for cls in classes for base in cls.bases]
    return [f"{name} inherits from {base}" for name, base in pairs if base in concrete]


def test_every_part_is_in_the_map():
    assert len(SOURCES) > 1, f"no package at {PACKAGE}"
    unlisted = {part_of(path) for path in SOURCES} - set(LAYERS)
    assert not unlisted, f"{sorted(unlisted)}: add to LAYERS in tests/test_architecture.py and to docs/architecture.md"


def test_every_part_is_in_the_picture():
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = {part_of(path) for path in SOURCES if not path.stem.startswith("__")} - set(re.findall(r"\w+", picture))
    assert not missing, f"docs/architecture.md does not mention {sorted(missing)}"


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_imports_point_one_way(path: Path):
    part = part_of(path)
    allowed = LAYERS.get(part, set()) | {part}
    used = dict.fromkeys(parts_used(parse(path), path))
    wrong = [f"line {line} imports {name}" for line, name in used if name not in allowed]
    assert not wrong, f"{short(path)}: {'; '.join(wrong)}. {part} may import {sorted(allowed - {part}) or 'nothing'}"


def test_no_import_cycle_between_parts():
    graph = {part: set() for part in LAYERS}
    for path in SOURCES:
        graph.setdefault(part_of(path), set()).update(used for _, used in parts_used(parse(path), path))
    try:
        TopologicalSorter({part: used - {part, "__init__"} for part, used in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}. Move what they share into a part below both")


@pytest.mark.parametrize("path", [path for path in SOURCES if part_of(path) in TORCH_FREE], ids=short)
def test_input_protocols_and_report_do_without_torch(path: Path):
    allowed = {"numpy", "sklearn", "scipy", "dicot"} | sys.stdlib_module_names
    at_once = set(imported(at_import(parse(path).body), path))
    for line, name in imported(ast.walk(parse(path)), path):
        root, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        light = root != "dicot" or part in TORCH_FREE or part not in LAYERS
        # A part with torch may be called where a large problem needs it, but not be loaded on import.
        assert light or (line, name) not in at_once, f"{short(path)}:{line} loads {part}, and torch, on import"
        assert root != "torch", f"{short(path)}:{line} imports torch; this part works on arrays only"
        assert part_of(path) != "protocols" or root in allowed, f"{short(path)}:{line}: numpy, scipy, scikit-learn only"


@pytest.mark.parametrize("entry", ["__init__.py", "cli/__init__.py"])
def test_starting_is_light(entry: str):
    """What runs on `import dicot` and on `dicot --help` must not load heavy packages."""
    waiting, seen = [(PACKAGE / entry, entry)], set()
    while waiting:
        path, chain = waiting.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        for line, name in imported(at_import(parse(path).body), path):
            heavy = [package for package in HEAVY if name == package or name.startswith(f"{package}.")]
            assert not heavy, f"{chain}:{line} imports {heavy[0]} on start; import it inside the function that needs it"
            root, *inner = name.split(".")
            for end in range(len(inner) + 1 if root == "dicot" else 0):  # dicot.a.b runs dicot and dicot.a as well
                stem = PACKAGE.joinpath(*inner[:end])
                target = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
                waiting.append((target, f"{chain} -> {short(target)}"))
    assert PACKAGE / entry in seen, f"src/dicot/{entry} is missing"


@pytest.mark.parametrize("path", [path for path in SOURCES if short(path).startswith(NAMELESS)], ids=short)
def test_shared_code_names_no_method_and_no_data_set(path: Path):
    found = method_names(parse(path))
    if short(path) != "train/recipe.py":  # the paper's budgets are stated per family of data sets
        found += data_set_names(parse(path))
    assert not found, f"{short(path)}: {'; '.join(found)}. Ask the Method or the data set's card instead of its name"


@pytest.mark.parametrize("path", EVERYTHING, ids=short)
def test_files_are_well_named(path: Path):
    assert not bad_file_name(path), f"{short(path)}: name the file after what it holds; no utils, no trailing digit"


def test_classes_are_abstract_or_final():
    classes = [node for path in SOURCES for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef)]
    found = subclassed_concrete(classes)
    assert not found, f"{'; '.join(found)}. Make the base abstract or share a function instead"


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_no_print_bare_except_or_pickle(path: Path):
    found = unsafe(parse(path), may_print=False)
    assert not found, f"{short(path)}: {'; '.join(found)}"
