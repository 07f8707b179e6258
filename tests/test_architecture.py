"""The rules of the house, checked on the source text alone: nothing of the package is imported here."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dicot"
SOURCES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = ("tests", "benchmarks", "paper")
EVERYTHING = SOURCES + [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]

# Which part of the package may import which: the picture in docs/architecture.md as a table. A part is a file or a
# folder directly under src/dicot. Imports inside functions and under TYPE_CHECKING obey it too.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "storage": {"errors"},
    "processes": {"errors"},
    "progress": set(),
    "data": {"errors"},
    "gpu": {"processes", "data", "storage", "errors"},
    "datasets": {"data", "storage", "errors"},
    "views": {"errors"},
    "losses": {"errors"},
    "encoders": {"gpu", "storage", "errors"},
    "methods": {"encoders", "views", "losses", "data", "errors"},
    "train": {"methods", "encoders", "data", "gpu", "processes", "storage", "errors"},
    "controls": {"encoders", "data", "gpu"},
    "embedding": {"encoders", "gpu", "processes", "data", "errors"},
    "presets": {"train", "errors"},
    "pretrained": {"encoders", "storage", "errors"},
    "saved": {"pretrained", "train", "encoders", "data", "errors"},
    "fitting": {"gpu", "embedding", "encoders", "methods", "pretrained", "progress", "train", "data", "errors"},
    "classical": {"errors"},
    "fewlabels": {"data", "errors"},
    "heads": {"fewlabels", "data", "storage", "errors"},
    "deployed": {"processes", "data", "storage", "errors"},
    "labels": {"fewlabels", "data", "storage", "errors"},
    "outliers": {"data", "errors"},
    "protocols": {"fewlabels", "data", "errors"},
    "projection": {"protocols", "data", "storage", "errors"},
    "tables": {"data", "storage", "errors"},
    "vectors": {"datasets", "progress", "data", "storage", "errors"},
    "search": {"vectors", "processes", "gpu", "data", "storage", "errors"},
    "corpus": {"vectors", "processes", "progress", "data", "storage", "errors"},
}


def above(*, but: tuple[str, ...] = ()) -> set[str]:
    """Every part listed so far, except for some."""
    assert set(but) <= set(LAYERS), f"not a part: {set(but) - set(LAYERS)}"
    return set(LAYERS) - set(but)


# An estimator embeds; others score, keep and search.
_KEEPING = (
    "vectors",
    "tables",
    "search",
    "outliers",
    "labels",
    "heads",
    "deployed",
)
_SCORING = ("protocols", "classical", "datasets", "projection", "corpus", *_KEEPING)
LAYERS["tuning"] = above(but=(*_SCORING, "controls", "pretrained", "saved"))
LAYERS["estimator"] = above(but=(*_SCORING, "tuning"))
LAYERS["classifier"] = above(but=_SCORING)
LAYERS["export"] = above(but=tuple(part for part in _SCORING if part not in ("heads", "deployed")))
LAYERS["runs"] = above(but=(*_SCORING, "classifier", "tuning", "export"))
_KEPT = (
    "vectors",
    "corpus",
    "tables",
    "search",
    "outliers",
    "pretrained",
    "saved",
    "runs",
    "tuning",
    "labels",
    "heads",
    "deployed",
    "export",
)  # for users, not for the benchmark
LAYERS["evaluation"] = above(but=(*_KEPT, "projection"))
LAYERS["bench"] = above(but=_KEPT)
LAYERS["report"] = {"classical", "datasets", "protocols", "projection", "progress", "storage", "data", "errors"}
LAYERS["explorer"] = {"vectors", "search", "labels", "outliers", "projection"}
LAYERS["explorer"] |= {"progress", "storage", "data", "errors"}
LAYERS["cli"] = above() | {"__init__"}
LAYERS["__init__"] = above()
LAYERS["__main__"] = {"cli"}

# Parts that work on arrays: none of them imports torch, and none loads a part that does on import.
TORCH_FREE = {
    "errors",
    "storage",
    "progress",
    "data",
    "datasets",
    "vectors",
    "tables",
    "classical",
}
TORCH_FREE |= {
    "processes",
    "heads",
    "corpus",
    "deployed",
    "protocols",
    "projection",
    "fewlabels",
    "outliers",
    "labels",
    "evaluation",
    "bench",
    "report",
}
HEAVY = {"torch", "sklearn", "pandas", "matplotlib", "aeon", "safetensors.torch"}  # seconds each to import

# The parts that may import an optional package; every package of an extra in pyproject.toml is listed.
EXTRAS: dict[str, set[str]] = {
    "aeon": {"classical", "data", "datasets"},
    "fastapi": {"explorer"},
    "fsspec": {"corpus"},
    "jinja2": {"report"},
    "matplotlib": {"report"},
    "onnx": {"export"},
    "onnxruntime": {"deployed"},
    "pandas": {"cli", "data", "evaluation", "report"},
    "pyarrow": {"data", "storage"},
    "pyedflib": {"data"},
    "ray": {"processes"},
    "statsmodels": {"methods"},
    "umap": {"projection"},
    "usearch": {"search"},
    "uvicorn": {"explorer"},
    "wfdb": {"data"},
}

# Shared code, which asks a method or a data set's card instead of its name; and the few files in it that list names.
NAMELESS = ("train/", "gpu/", "protocols/", "evaluation", "bench/", "embedding/", "controls.py", "fitting.py")
LISTS = {"bench/paper_suites.py", "bench/best_suite.py"}
FAMILIES = {"train/recipe.py"}  # the paper's budgets are stated per family of data sets
WORDS = {"soft", "cost", "supervised", "synthetic"}  # names that are plain words as well

PICKLE = re.compile(r"\b(pickle|dill|joblib)\b")
PROPER_NAMES_WITH_DIGIT = {"ts2vec", "pamap2", "wisdm2", "wisdm2019"}


def short(path: Path) -> str:
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


@cache
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


def registered(part: str, registry: str) -> dict[str, str]:
    """Name -> class of a registry that is a dictionary literal in the part's `__init__.py` or a file below it."""
    for path in sorted((PACKAGE / part).rglob("*.py")):
        for node in parse(path).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if isinstance(getattr(node, "value", None), ast.Dict) and registry in map(ast.unparse, targets):
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return {key.value: ast.unparse(value) for key, value in pairs if isinstance(key, ast.Constant)}
    raise AssertionError(f"{part}/ has no dictionary {registry}")


@cache
def method_names() -> frozenset[str]:
    """Keys and classes of METHODS, as they are written."""
    methods = registered("methods", "METHODS")
    return frozenset({*methods, *methods.values()} - WORDS)


@cache
def data_set_names() -> tuple[frozenset[str], frozenset[str]]:
    """Names of data sets in lower case, which count in any spelling, and names of the archives, as they are written.

    A file of datasets/ names its set where the object is made: `SET = Kind(name="set")`, `_make("set")`; the archives
    are tables in one string.
    """
    names, archives = set(), set()
    for path in sorted((PACKAGE / "datasets").rglob("*.py")):
        constants = {}
        for node in parse(path).body:
            value = getattr(node, "value", None)
            if not isinstance(node, ast.Assign | ast.AnnAssign) or value is None:
                continue
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                constants[target] = value.value
                archives |= set(re.findall(r"(?:^|;)\s*(\w+) \d+ \d+ ", value.value))
            for call in (call for call in ast.walk(value) if isinstance(call, ast.Call)):
                given = [keyword.value for keyword in call.keywords if keyword.arg == "name"] + call.args[:1]
                for word in given:
                    text = constants.get(word.id) if isinstance(word, ast.Name) else getattr(word, "value", None)
                    if isinstance(text, str) and re.fullmatch(r"[A-Za-z][\w-]*", text):
                        names.add(text.lower())
    return frozenset(names - WORDS), frozenset(archives)


def named(path: Path) -> list[str]:
    """Every method and data set that a file names, with the line."""
    large, archives = data_set_names()
    sets = set() if short(path) in FAMILIES else large
    hits = []
    for line, name, is_text in names_in(parse(path)):
        method = name in method_names() and (is_text or name != "dicot")  # the package has the name of a method
        # Identifiers count as they are written, because of time.sleep.
        data_set = name in archives or (is_text and name.lower() in sets) or (name.isupper() and name.lower() in sets)
        if method or data_set:
            hits.append(f"{short(path)}:{line}: {name}")
    return hits


def unsafe(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        match node:
            case ast.Call(func=ast.Name("print")):
                problem = "print(); only cli/ talks to the terminal, through typer"
            case ast.ExceptHandler(type=None):
                problem = "bare except; name the exceptions"
            case ast.keyword("allow_pickle", ast.Constant(True)) | ast.keyword("weights_only", ast.Constant(False)):
                problem = f"{ast.unparse(node)}; loading pickle runs foreign code"
            case ast.Import() | ast.ImportFrom() if PICKLE.search(ast.unparse(node)):
                problem = "pickle; loading it runs foreign code, use safetensors, npz or json"
            case _:
                continue
        yield f"{short(path)}:{node.lineno}: {problem}"


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
    concrete = {cls.name for cls in classes if not cls.name.endswith(("Error", "Warning"))}
    concrete -= {cls.name for cls in classes if is_abstract(cls)}
    pairs = [(cls.name, plain(base)) for cls in classes for base in cls.bases]
    return [f"{name} inherits from {base}" for name, base in pairs if base in concrete]


def listed(violations: list[str], advice: str) -> str:
    """All violations of a rule, one per line, and what to do."""
    return "\n".join(["", *violations, advice])


def test_every_part_is_in_the_map():
    assert len(SOURCES) > 1, f"no package at {PACKAGE}"
    unlisted = {part_of(path) for path in SOURCES} - set(LAYERS)
    assert not unlisted, f"{sorted(unlisted)}: add to LAYERS in tests/test_architecture.py and to docs/architecture.md"


def test_every_part_is_in_the_picture():
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = {part_of(path) for path in SOURCES if not path.stem.startswith("__")} - set(re.findall(r"\w+", picture))
    assert not missing, f"docs/architecture.md does not mention {sorted(missing)}"


def test_imports_point_one_way():
    wrong = []
    for path in SOURCES:
        allowed = LAYERS.get(part_of(path), set()) | {part_of(path)}
        used = dict.fromkeys(parts_used(parse(path), path))
        wrong += [f"{short(path)}:{line} imports {name}" for line, name in used if name not in allowed]
    assert not wrong, listed(wrong, "See LAYERS: data flows one way, and nothing downstream is imported upstream.")


def test_nothing_of_the_package_imports_what_lies_beside_it():
    beside = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"src"}
    wrong = [
        f"{short(path)}:{line} imports {name}"
        for path in SOURCES
        for line, name in imported(ast.walk(parse(path)), path)
        if name.partition(".")[0] in beside
    ]
    assert not wrong, listed(wrong, "An installed package has no benchmarks/, tests/ or docs/ beside it.")


def test_no_import_cycle_between_parts():
    graph = {part: set() for part in LAYERS}
    for path in SOURCES:
        graph.setdefault(part_of(path), set()).update(used for _, used in parts_used(parse(path), path))
    try:
        TopologicalSorter({part: used - {part, "__init__"} for part, used in graph.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}. Move what they share into a part below both")


def test_input_protocols_and_report_do_without_torch():
    arrays = {"numpy", "sklearn", "scipy", "dicot"} | sys.stdlib_module_names
    wrong = []
    for path in (path for path in SOURCES if part_of(path) in TORCH_FREE):
        at_once = set(imported(at_import(parse(path).body), path))
        for line, name in imported(ast.walk(parse(path)), path):
            root, _, rest = name.partition(".")
            part = rest.partition(".")[0]
            light = root != "dicot" or part in TORCH_FREE or part not in LAYERS
            if root == "torch":
                wrong.append(f"{short(path)}:{line} imports torch; this part works on arrays only")
            # A part with torch may be called where a large problem needs it, but not be loaded on import.
            if not light and (line, name) in at_once:
                wrong.append(f"{short(path)}:{line} loads {part}, and torch, on import")
            if part_of(path) == "protocols" and root not in arrays:
                wrong.append(f"{short(path)}:{line} imports {root}; protocols use numpy, scipy and scikit-learn only")
    assert not wrong, listed(wrong, "Import inside the function that needs it, or move the code.")


def test_starting_is_light():
    """What runs on `import dicot` and on `dicot --help` must not load heavy packages."""
    wrong = []
    for entry in ("__init__.py", "cli/__init__.py"):
        waiting, seen = [(PACKAGE / entry, entry)], set()
        while waiting:
            path, chain = waiting.pop()
            if path in seen or not path.exists():
                continue
            seen.add(path)
            for line, name in imported(at_import(parse(path).body), path):
                heavy = [package for package in HEAVY if name == package or name.startswith(f"{package}.")]
                wrong += [f"{chain}:{line} imports {package} on start" for package in heavy]
                root, *inner = name.split(".")
                for end in range(len(inner) + 1 if root == "dicot" else 0):  # dicot.a.b runs dicot and dicot.a as well
                    stem = PACKAGE.joinpath(*inner[:end])
                    target = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
                    waiting.append((target, f"{chain} -> {short(target)}"))
        assert PACKAGE / entry in seen, f"src/dicot/{entry} is missing"
    assert not wrong, listed(wrong, "Import it inside the function that needs it.")


def test_optional_packages_are_imported_where_they_are_declared():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    declared = {re.split(r"[<>=~!\[ ]", text)[0] for name in extras if name != "dev" for text in extras[name]}
    declared = {package.removesuffix("-learn") for package in declared}  # umap-learn is imported as umap
    assert declared - {"dicot"} == set(EXTRAS), "EXTRAS and the extras of pyproject.toml name other packages"
    wrong = []
    for path in SOURCES:
        at_once = set(imported(at_import(parse(path).body), path))
        for line, name in imported(ast.walk(parse(path)), path):
            package = name.partition(".")[0]
            if part_of(path) not in EXTRAS.get(package, {part_of(path)}):
                wrong.append(f"{short(path)}:{line} imports {package}")
            if package in EXTRAS and part_of(path) != "report" and (line, name) in at_once:
                wrong.append(f"{short(path)}:{line} imports {package}, which may be missing, on import")
    assert not wrong, listed(wrong, "See EXTRAS, and errors.need_extra for what to say where the package is missing.")


def test_shared_code_names_no_method_and_no_data_set():
    large, archives = data_set_names()  # a rule that knows no names would hold for any code
    assert {"ts2vec", "TS2Vec", "tnc"} <= method_names() and {"harth", "sleep", "pamap2", "hapt"} <= large
    assert {"GunPoint", "OSULeaf", "BasicMotions"} <= archives
    shared = [path for path in SOURCES if short(path).startswith(NAMELESS) and short(path) not in LISTS]
    assert len(shared) > 10, "NAMELESS names parts that are gone"
    wrong = [hit for path in shared for hit in named(path)]
    assert not wrong, listed(wrong, "Ask the Method or the data set's card instead of its name.")


def test_files_are_well_named():
    wrong = [short(path) for path in EVERYTHING if bad_file_name(path)]
    assert not wrong, listed(wrong, "Name a file after what it holds; no utils, no trailing digit.")


def test_classes_are_abstract_or_final():
    classes = [node for path in SOURCES for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef)]
    wrong = subclassed_concrete(classes)
    assert not wrong, listed(wrong, "Make the base abstract or share a function instead.")


def test_a_class_name_is_defined_once():
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(f"{short(path)}:{node.lineno}")
    wrong = [f"{name}: {', '.join(places)}" for name, places in homes.items() if len(places) > 1]
    assert not wrong, listed(wrong, "One name per thing: rename all but one.")


def test_no_print_bare_except_or_pickle():
    wrong = [violation for path in SOURCES for violation in unsafe(path)]
    assert not wrong, listed(wrong, "")
