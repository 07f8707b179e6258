"""Write docs/api.md from the docstrings of the public names: `python docs/api.py`."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import dicot

PAGE = Path(__file__).with_name("api.md")
TOPICS = {  # as a reader meets them: everyday use first, then what a researcher opens
    "Data": ("load", "Windows", "Reading", "Corpus"),
    "Vectors": ("TimeSeriesEmbedder", "embed"),
    "Labels": (
        "FewLabelClassifier",
        "TimeSeriesClassifier",
        "LabelStore",
        "suggest",
        "honest_accuracy",
        "probably_wrong",
        "agreement",
    ),
    "Search and outliers": ("EmbeddingIndex", "EmbeddingOutlierDetector"),
    "Deployment": ("export_onnx", "OnnxEmbedder", "Stream"),
    "Comparison": ("evaluate",),
    "Training": ("pretrain", "Recipe", "Method", "Encoder", "join_ranks"),
}
HEAD = """# API

The public names by topic, all imported from `dicot`. `python docs/api.py` writes this page from the docstrings.

"""


def page() -> str:
    """Return the text of docs/api.md."""
    order = [name for names in TOPICS.values() for name in names]
    missing = set(dicot.__all__) - {"__version__"} ^ set(order)
    assert not missing, f"TOPICS and dicot.__all__ differ in {sorted(missing)}"
    index = "\n\n".join(
        f"**{topic}**\n\n"
        + "\n".join(f"- [{name}](#{name.lower()}): {_first_sentence(getattr(dicot, name))}" for name in names)
        for topic, names in TOPICS.items()
    )
    parts = [part for name in order for part in _entry(name, getattr(dicot, name))]
    return HEAD + index + "\n\n" + "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"## {name}"
    is_record = is_dataclass(thing) and not hasattr(thing, "fit")
    yield _code(_fields(thing) if is_record else _signature(name, thing))
    yield _prose(thing)
    if inspect.isclass(thing):
        for method, member in vars(thing).items():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if not method.startswith("_") and inspect.isfunction(function):
                yield f"### {name}.{method}"
                yield _code(method if isinstance(member, property) else _signature(method, function))
                yield _prose(function)


def _node(thing: Any) -> ast.ClassDef | ast.FunctionDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    return node


def _signature(name: str, thing: Any) -> str:
    """Return the signature as the source has it: one argument per line where it does not fit into one."""
    if is_dataclass(thing):  # an estimator, whose arguments are fields, some of them of its base
        first, *others = inspect.signature(thing).parameters.values()
        arguments, returns = [_parameter(first), "*", *map(_parameter, others)], ""
    else:
        node = _node(thing)
        returns = f" -> {ast.unparse(node.returns).strip(chr(39) + chr(34))}" if getattr(node, "returns", None) else ""
        if isinstance(node, ast.ClassDef):
            node = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        arguments = [text for text in _arguments(node.args) if text not in ("self", "cls")]
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= 110:
        return line
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){returns}"


def _parameter(one: inspect.Parameter) -> str:
    return f"{one.name}: {one.annotation} = {one.default!r}"


def _arguments(args: ast.arguments) -> Iterator[str]:
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(args.defaults)), *args.defaults]
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        yield _argument(argument, default)
        if args.posonlyargs and number == len(args.posonlyargs) - 1:
            yield "/"
    if args.vararg:
        yield f"*{ast.unparse(args.vararg)}"
    elif args.kwonlyargs:
        yield "*"
    for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _argument(argument, default)
    if args.kwarg:
        yield f"**{ast.unparse(args.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    return text if default is None else f"{text}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def _fields(thing: type) -> str:
    """Return the fields of a dataclass with the comments behind them, which say what they are."""
    lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    fields = [n for n in _node(thing).body if isinstance(n, ast.AnnAssign)]
    return f"{thing.__name__}:\n" + "\n".join(lines[n.lineno - 1] for n in fields)


def _code(text: str) -> str:
    return f"```text\n{text}\n```"  # not python: these lines are to be read, not run


def _first_sentence(thing: Any) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    return re.split(r"\.(?:\s|$)", inspect.getdoc(thing) or "", maxsplit=1)[0].replace("\n", " ")


def _prose(thing: Any) -> str:
    """Return a docstring as Markdown: sections become lists, one item per parameter."""
    text = inspect.getdoc(thing)
    assert text, f"{thing.__qualname__} has no docstring"
    head, *sections = re.split(r"^(Parameters|Attributes)\n-+\n", text, flags=re.MULTILINE)
    out = head.rstrip()
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        items = re.split(r"\n(?=\S)", body.strip())
        out += f"\n\n**{title}**\n"
        for item in items:
            names, _, meaning = " ".join(item.split()).partition(" : ")
            out += f"\n- {', '.join(f'`{one.strip()}`' for one in names.split(','))}: {meaning}"
    return out


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
