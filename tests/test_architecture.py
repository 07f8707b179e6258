"""The rules of the house, checked on the source text alone: nothing of the package is imported here."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "dicot"
SOURCES = sorted(PACKAGE.rglob("*.py"))
BENCH = sorted((ROOT / "bench").rglob("*.py"))
EVERYTHING = [*SOURCES, *BENCH, *sorted((ROOT / "tests").rglob("*.py"))]

# The rooms from the ground up: the picture in docs/architecture.md. A room imports itself and rooms of lower floors.
FLOORS = [
    {"core"},
    {"data"},
    {"nets"},
    {"methods"},
    {"train"},
    {"model"},
    {"store"},
    {"use"},
    {"judge"},
    {"explorer"},
    {"cli"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

HEAVY = {"torch", "sklearn", "pandas", "matplotlib", "aeon", "scipy", "safetensors.torch"}  # slow to import
ARRAYS_ONLY = ("data", "store", "use", "judge/protocols", "judge/classical", "judge/report")
# The rooms that may import an optional package; every package of an extra in pyproject.toml is listed.
EXTRAS = {
    "aeon": {"data", "judge"},
    "anywidget": {"explorer"},
    "fastapi": {"explorer"},
    "jinja2": {"judge"},
    "matplotlib": {"judge"},
    "onnx": {"model"},
    "onnxruntime": {"model"},
    "pyarrow": {"core", "data", "store"},
    "ray": {"store"},
    "statsmodels": {"methods"},
    "traitlets": {"explorer"},
    "umap": {"use"},
    "uvicorn": {"explorer"},
}
# Shared code asks a method or a data set's card instead of its name; LISTS are the few files in it that list names.
NAMELESS = ("core", "train", "model", "store", "judge")
LISTS = {"model/presets.py", "train/recipe.py"}
WORDS = {
    "soft",
    "cost",
    "supervised",
    "Supervised",
    "synthetic",
    "across",
    "sleep",
    "night",
}  # names that are plain words as well


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def short(path: Path) -> str:
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import among the nodes; `from a import b` gives a.b."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def at_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not in functions, not under `if TYPE_CHECKING`."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_import(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from at_import(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def file_of(name: str) -> Path | None:
    """The file of the package or of the bench that a dotted name lies in, or None."""
    root, *inner = name.split(".")
    top = {"dicot": PACKAGE, "bench": ROOT / "bench"}.get(root)
    if top is None:
        return None
    for end in range(len(inner), -1, -1):
        stem = top.joinpath(*inner[:end])
        if stem.with_suffix(".py").is_file() and end:
            return stem.with_suffix(".py")
        if (stem / "__init__.py").is_file():
            return stem / "__init__.py"
    return None


@cache
def loads(path: Path) -> frozenset[Path]:
    """The files of the package that importing this one loads at once, without its own packages' faces."""
    found = {file_of(name) for _, name in imports(at_import(parse(path).body))}
    return frozenset(target for target in found if target is not None and target != path)


@cache
def is_heavy(path: Path) -> bool:
    """Whether importing this file loads a heavy package."""
    seen, waiting = set(), [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        if any(
            name == heavy or name.startswith(f"{heavy}.")
            for _, name in imports(at_import(parse(file).body))
            for heavy in HEAVY
        ):
            return True
        waiting += loads(file)
    return False


def registered(folder: str, registry: str) -> dict[str, str]:
    """Name -> class of a registry that is a dictionary literal in a file of the folder."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for node in parse(path).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if isinstance(getattr(node, "value", None), ast.Dict) and registry in map(ast.unparse, targets):
                pairs = zip(node.value.keys, node.value.values, strict=True)
                return {key.value: ast.unparse(value) for key, value in pairs if isinstance(key, ast.Constant)}
    raise AssertionError(f"{folder}/ has no dictionary {registry}")


def listed(violations: list[str], advice: str) -> str:
    return "\n".join(["", *violations, advice])


def test_the_rooms_are_those_of_the_picture():
    loose = [path.name for path in PACKAGE.glob("*.py") if path.stem not in ("__init__", "__main__")]
    assert not loose, f"{loose} stand in no room"
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert rooms == set(FLOOR)
    picture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert all(f"{room}/" in picture for room in (*FLOOR, "bench"))
    assert picture.count("\n") <= 150, "a picture is read in one go"


def test_imports_point_down():
    wrong = []
    for path in SOURCES:
        mine = room_of(path)
        for line, name in imports(ast.walk(parse(path))):
            target = file_of(name)
            if target not in SOURCES or target == PACKAGE / "__init__.py" or mine.startswith("__"):
                continue
            if room_of(target) != mine and FLOOR[room_of(target)] >= FLOOR[mine]:
                wrong.append(f"{short(path)}:{line} imports {name}")
    assert not wrong, listed(wrong, "A room imports rooms of lower floors only; see FLOORS.")


def test_no_circle_between_files():
    files = [*SOURCES, *BENCH]
    used = {path: {file_of(name) for _, name in imports(ast.walk(parse(path)))} - {None, path} for path in files}
    faces = {path for path in files if path.name == "__init__.py"}  # a face hands on names of its own files
    try:
        TopologicalSorter({path: used[path] - faces for path in files if path not in faces}).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' -> '.join(short(path) for path in error.args[1])}")


def test_imports_inside_functions_are_of_heavy_code():
    """Only a command imports what it needs when it is called, because `dicot --help` must be quick."""
    wrong = []
    for path in (path for path in SOURCES if room_of(path) != "cli"):
        at_once = set(imports(at_import(parse(path).body)))
        for line, name in imports(ast.walk(parse(path))):
            target = file_of(name)
            typed = (line, name) in typing_only(path)
            if target and (line, name) not in at_once and not typed and not is_heavy(target):
                wrong.append(f"{short(path)}:{line} imports {name} inside a function")
    assert not wrong, listed(wrong, "Import it at the top of the file.")


@cache
def typing_only(path: Path) -> frozenset[tuple[int, str]]:
    blocks = [n for n in ast.walk(parse(path)) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return frozenset(imports(node for block in blocks for child in block.body for node in ast.walk(child)))


def test_starting_is_light():
    """What runs on `import dicot` and on `dicot --help` loads no heavy package."""
    assert not is_heavy(PACKAGE / "__init__.py")
    heavy = [short(path) for path in loads(PACKAGE / "cli" / "__init__.py") if is_heavy(path)]
    assert not heavy, listed(heavy, "Import heavy code inside the function that needs it.")


def test_rooms_of_arrays_load_no_torch():
    wrong = []
    for path in SOURCES:
        if short(path).startswith(ARRAYS_ONLY):
            wrong += [
                f"{short(path)}:{line}"
                for line, name in imports(at_import(parse(path).body))
                if name.split(".")[0] == "torch"
            ]
    assert not wrong, listed(wrong, "This room works on arrays: it must be usable without loading torch.")


def test_optional_packages_are_imported_where_they_are_declared():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    declared = {re.split(r"[<>=~!\[ ]", text)[0] for name in extras if name != "dev" for text in extras[name]}
    declared = {package.removesuffix("-learn") for package in declared}  # umap-learn is imported as umap
    assert declared - {"dicot"} == set(EXTRAS), "EXTRAS and the extras of pyproject.toml name other packages"
    wrong = []
    for path in SOURCES:
        for line, name in imports(ast.walk(parse(path))):
            if room_of(path) not in EXTRAS.get(name.partition(".")[0], {room_of(path)}):
                wrong.append(f"{short(path)}:{line} imports {name}")
    assert not wrong, listed(wrong, "See EXTRAS, and need_extra in core/errors.py for what to say where it is missing.")


def test_nothing_of_the_package_imports_what_lies_beside_it():
    beside = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"src"}
    names = [(path, line, name) for path in SOURCES for line, name in imports(ast.walk(parse(path)))]
    wrong = [f"{short(path)}:{line} imports {name}" for path, line, name in names if name.partition(".")[0] in beside]
    assert not wrong, listed(wrong, "An installed package has no bench/, tests/ or docs/ beside it.")


def test_shared_code_names_no_method_and_no_data_set():
    methods = registered("methods", "METHODS")
    known = {*methods, *methods.values()} - WORDS - {"dicot"}
    lines = (PACKAGE / "data/datasets/archives.txt").read_text(encoding="utf-8").splitlines()
    archives = {line.split()[1] for line in lines}
    assert {"ts2vec", "TS2Vec", "tnc"} <= known and {"GunPoint", "OSULeaf", "BasicMotions"} <= archives
    wrong = []
    for path in SOURCES:
        if room_of(path) in NAMELESS and short(path) not in LISTS:
            for node in ast.walk(parse(path)):
                word = (
                    node.value if isinstance(node, ast.Constant) else getattr(node, "id", getattr(node, "attr", None))
                )
                if isinstance(word, str) and word in known | archives:
                    wrong.append(f"{short(path)}:{node.lineno}: {word}")
    assert not wrong, listed(wrong, "Ask the Method or the data set's card instead of its name.")


def test_files_are_well_named():
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    wrong = [short(path) for path in EVERYTHING if vague & set(path.stem.removeprefix("test_").split("_"))]
    assert not wrong, listed(wrong, "Name a file after what it holds.")


def test_classes_are_abstract_or_final_and_named_once():
    classes = [(path, node) for path in SOURCES for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef)]

    def last(node: ast.AST) -> str:
        return ast.unparse(node).partition("[")[0].rpartition(".")[2]

    def is_abstract(cls: ast.ClassDef) -> bool:
        marks = [*cls.bases, *(d for m in cls.body for d in getattr(m, "decorator_list", []))]
        return bool({last(mark) for mark in marks} & {"ABC", "abstractmethod", "TypedDict", "Protocol"})

    final = {cls.name for _, cls in classes if not is_abstract(cls) and not cls.name.endswith(("Error", "Warning"))}
    wrong = [
        f"{short(p)}: {cls.name} inherits from {last(base)}"
        for p, cls in classes
        for base in cls.bases
        if last(base) in final
    ]
    assert not wrong, listed(wrong, "Make the base abstract or share a function instead.")
    names = [cls.name for _, cls in classes]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice, f"{twice}: one name per thing"


def test_no_print_bare_except_or_pickle():
    wrong = []
    for path in SOURCES:
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(func=ast.Name("print")):
                    problem = "print(); only cli/ talks to the terminal, through typer"
                case ast.ExceptHandler(type=None):
                    problem = "bare except; name the exceptions"
                case ast.keyword("allow_pickle", ast.Constant(True)) | ast.keyword("weights_only", ast.Constant(False)):
                    problem = f"{ast.unparse(node)}; loading pickle runs foreign code"
                case ast.Import() | ast.ImportFrom() if re.search(r"\b(pickle|dill|joblib)\b", ast.unparse(node)):
                    problem = "pickle; loading it runs foreign code"
                case _:
                    continue
            wrong.append(f"{short(path)}:{node.lineno}: {problem}")
    assert not wrong, listed(wrong, "")
