"""dicot explore: a map of all windows in a browser, to look at, search and label."""

import glob
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import options as opt
from dicot.cli.embed import embed_shards
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_data, check_inputs, check_model, check_outputs, check_page
from dicot.cli.settings import checking_options
from dicot.cli.sources import find_source
from dicot.core.errors import WrongCallError, lookup

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.explorer.page import Assets
    from dicot.explorer.workspace import ExplorerWorkspace


@final
@dataclass(frozen=True)
class MapOptions:
    """How the map is made, and where it is shown."""

    map_kind: Annotated[str, typer.Option("--map", help="tsne, or umap, which needs the extra umap.")] = "tsne"
    port: Annotated[int, typer.Option(help="Where to serve on this machine; 0: a free one.")] = 0
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True

    def check(self) -> None:
        from dicot.use.projection import LANDMARKS

        with checking_options():
            lookup(LANDMARKS, self.map_kind, "map")


@final
@dataclass(frozen=True)
class PageOptions:
    """A page that is written to a file, in place of one that is served."""

    export: Annotated[Path | None, typer.Option(help="Write a page to send, an .html, and serve nothing.")] = None
    overwrite: opt.Overwrite = False

    def check(self, inputs: list[Path], sample: int | None) -> None:
        if self.export is not None:
            check_page(self.export, "--export")
        check_outputs(self.export, overwrite=self.overwrite, inputs=inputs)
        if sample is not None and self.export is None:
            raise WrongCallError("sample is for --export; the page that is served shows all windows. Leave it out.")


def explore(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DATA|VECTORS",
            help=f"DATA: {opt.DATA} a folder, a pattern or, with --window, a file of recordings. VECTORS: "
            "what `dicot embed` wrote.",
        ),
    ],
    shown: MapOptions,
    page: PageOptions,
    reading: opt.ReadingOptions,
    data: opt.Series = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="The file of labels; default: one beside the vectors. More are shown beside it, and not changed."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Of DATA: embed with it, for example dicot-base. Of VECTORS: it made them; to say why."),
    ] = None,
) -> None:
    """Show a map of all windows in the browser, on this machine alone; labels go to a file that `dicot label` reads.

    DATA are embedded first, into NAME-vectors.npz in the working directory; where this is there and up to date, it is
    used. The model is the preset instant, fitted on DATA and kept in NAME-vectors.model, or that of --model. Map,
    clusters and outlier scores are kept beside it too. --set takes how files are read, such as rate=50, and with
    --export sample, the number of windows to draw; default: all of them, up to 20,000.
    """
    settings = reading.by_group(own=("sample",))
    sample = settings.own.get("sample")
    # What can be refused is refused before the map is made, which takes minutes.
    shown.check()
    labels = labels or []
    other_labels = labels[1:]
    check_inputs("file", *other_labels)  # the first is made where it is not there
    page.check([Path(what), *labels], sample)

    from dicot.explorer.page import load_assets
    from dicot.explorer.workspace import open_workspace
    from dicot.store.vectors import are_vectors

    assets = load_assets()
    opened: dict[str, Any] = {"labels": labels[0] if labels else None, "others": other_labels, "model": model}
    opened |= {"map_kind": shown.map_kind, "say": _say, "data": data}
    if are_vectors(what):
        options = settings.reading
        vectors, opened["rate"] = Path(what), options.pop("rate", None)
    elif data is not None:
        raise WrongCallError(
            f"--data is for vectors whose series were moved; {what} are series themselves. Leave it out."
        )
    else:
        options = {}
        vectors = _embedded(what, settings.reading, model, page.overwrite, reading.allowance)
    open_map = partial(open_workspace, vectors, options=options, **opened)
    if page.export is not None:
        _export(page.export, vectors, sample, open_map, assets)
    else:
        _serve(shown, open_map, assets)
    end(reading.allowance)


def _export(
    page: Path,
    vectors: Path,
    sample: int | None,
    open_map: Callable[[], "ExplorerWorkspace"],
    assets: "Assets",
) -> None:
    """Write the map as one file."""
    from dicot.core.storage import check_writable
    from dicot.explorer.page import rows_of_page, write_page
    from dicot.store.vectors import read_vectors

    check_writable(page)
    rows = rows_of_page(len(read_vectors(vectors)), sample)
    write_page(page, open_map(), rows, assets)
    typer.echo(f"Wrote {page}")


def _serve(shown: MapOptions, open_map: Callable[[], "ExplorerWorkspace"], assets: "Assets") -> None:
    """Serve the map until somebody presses Ctrl-C."""
    from dicot.explorer.server import listen, serve

    with listen(shown.port) as listener:
        serve(open_map(), listener, assets, on_ready=_say_ready, open_browser=shown.browser)
    typer.echo("Stopped.")


def _embedded(data: str, options: dict[str, Any], named: Path | None, overwrite: bool, allowance: "Allowance") -> Path:
    """Embed DATA with the model that is named, or else the default, and return the file.

    A file that is up to date is used. One whose recordings have changed is made anew where nothing is lost by it.
    """
    check_data(data)

    from dicot.model.box import in_box
    from dicot.use.embedfiles import embed_into, plan_renewal
    from dicot.use.modelchoice import ChosenModel, EmbedderOptions, default_model

    out = _place(data)
    source = find_source(data, options, 0, out, allowance)
    if source.corpus is not None:
        out = out.with_suffix("")

    loading = EmbedderOptions(missing=options.get("missing"), verbose=True)
    model = None
    if named is not None:
        path = in_box(named)
        check_model(path)
        model = ChosenModel(path, loading, say=typer.echo)
    if out.exists() and source.corpus is None and not overwrite:
        renewal = plan_renewal(out, source, loading, model, say=typer.echo)
        if not renewal.is_needed:
            return out
        model = renewal.model

    if model is None:
        model = default_model(out, loading, overwrite=overwrite, say=typer.echo)
    if source.corpus is not None:
        embed_shards(model, source.corpus, out, "auto", None, overwrite, {})
    else:
        embed_into(out, source, model, say=typer.echo)
    return out


def _place(data: str) -> Path:
    """Name the file for the vectors of DATA: in the working directory, but not among the recordings."""
    from dicot.data.reading import before_pattern, stem_of

    path = Path(data).expanduser()
    if not (path.is_dir() or glob.has_magic(data)):
        return Path(f"{stem_of(path)}-vectors.npz")
    folder = before_pattern(path).resolve()
    here = folder.parent if Path.cwd().is_relative_to(folder) else Path()
    return here / f"{folder.name}-vectors.npz"


def _say(sentence: str) -> None:
    warning = sentence.startswith("Warning: ")
    typer.secho(sentence, fg="yellow" if warning else None, err=warning)


def _say_ready(url: str) -> None:
    _say(f"Explorer: {url}\nThe address is for you alone. Press Ctrl-C to stop.")
