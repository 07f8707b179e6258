"""dicot explore: a map of all windows in a browser, to look at, search and label."""

import glob
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.embed import embed_shards, embed_source, hash_of, load_embedder
from dicot.cli.models import ChosenModel, default_model, hash_at
from dicot.cli.paths import check_data, check_inputs, check_model, check_outputs, check_page
from dicot.cli.sources import find_source
from dicot.core.errors import InputError, WrongCallError, lookup

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance


def explore(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DATA|VECTORS",
            help=f"DATA: {opt.DATA} a folder, a pattern or, with --window, a file of recordings. VECTORS: "
            "what `dicot embed` wrote.",
        ),
    ],
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
    map_kind: Annotated[str, typer.Option("--map", help="tsne, or umap, which needs the extra umap.")] = "tsne",
    port: Annotated[int, typer.Option(help="Where to serve on this machine; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    export: Annotated[Path | None, typer.Option(help="Write a page to send, an .html, and serve nothing.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Show a map of all windows in the browser, on this machine alone; labels go to a file that `dicot label` reads.

    DATA are embedded first, into NAME-vectors.npz in the working directory; where this is there and up to date, it is
    used. The model is the preset instant, fitted on DATA and kept in NAME-vectors.model, or that of --model. Map,
    clusters and outlier scores are kept beside it too. --set takes how files are read, such as rate=50, and with
    --export sample, the number of windows to draw; default: all of them, up to 20,000.
    """
    from dicot.core.storage import check_writable
    from dicot.explorer.page import load_assets, rows_of_page, write_page
    from dicot.explorer.workspace import open_workspace
    from dicot.store.vectors import are_vectors, read_vectors
    from dicot.use.projection import LANDMARKS

    settings = reading.by_group(own=("sample",))
    options, sample = settings.reading, settings.own.get("sample")
    # What can be refused is refused before the map is made, which takes minutes.
    with opt.checking_options():
        lookup(LANDMARKS, map_kind, "map")
    check_inputs("file", *(labels or [])[1:])  # the first is made where it is not there
    if export is not None:
        check_page(export, "--export")
    check_outputs(export, overwrite=overwrite, inputs=(Path(what), *(labels or [])))
    assets = load_assets()
    if sample is not None and export is None:
        raise WrongCallError("sample is for --export; the page that is served shows all windows. Leave it out.")
    if are_vectors(what):
        vectors, rate = Path(what), options.pop("rate", None)
    elif data is not None:
        raise WrongCallError(
            f"--data is for vectors whose series were moved; {what} are series themselves. Leave it out."
        )
    else:
        vectors, options, rate = _embedded(what, options, model, overwrite, reading.allowance), {}, None
    opened: dict[str, Any] = {"data": data, "options": options, "rate": rate, "map_kind": map_kind, "say": _say}
    given = labels or []
    opened |= {"labels": given[0] if given else None, "others": given[1:], "model": model}
    if export is not None:
        check_writable(export)
        rows = rows_of_page(len(read_vectors(vectors)), sample)
        write_page(export, open_workspace(vectors, **opened), rows, assets)
        typer.echo(f"Wrote {export}")
        opt.end(reading.allowance)
        return
    from dicot.explorer.server import listen, serve

    ready = "Explorer: {}\nThe address is for you alone. Press Ctrl-C to stop."
    with listen(port) as listener:
        workspace = open_workspace(vectors, **opened)
        serve(workspace, listener, assets, on_ready=lambda url: _say(ready.format(url)), open_browser=browser)
    typer.echo("Stopped.")
    opt.end(reading.allowance)


def _embedded(data: str, reading: dict[str, Any], named: Path | None, overwrite: bool, allowance: "Allowance") -> Path:
    """Embed DATA with the model that is named, or else the default, and return the file.

    A file that is up to date is used. One whose recordings have changed is made anew where nothing is lost by it.
    """
    from dicot.model.box import in_box
    from dicot.store.embedding import is_current, lost_by_renewal
    from dicot.store.modelplace import model_beside
    from dicot.store.vectors import source_of

    check_data(data)

    out = _place(data)
    missing = reading.get("missing")
    load = partial(load_embedder, missing=missing, verbose=True)
    source = find_source(data, reading, 0, out, allowance)
    if source.corpus is not None:
        out = out.with_suffix("")

    model = None
    if named is not None:
        path = in_box(named)
        check_model(path)
        model = ChosenModel(path, partial(load, path.absolute()), "auto", missing=missing)
    if out.exists() and source.corpus is None and not overwrite:
        made_of = source_of(out)
        if made_of is None or not made_of.is_of(data):
            raise InputError(
                f"{out} is there already, and not made of {data}. Move it, use another folder, or say --overwrite to "
                "replace it."
            )
        kept = model_beside(out)
        if model is None and hash_at(kept) == made_of.model:
            # A classifier of the vectors that are there goes with their model, which a new fit would replace.
            model = ChosenModel(kept, partial(load, kept.absolute()), "auto", missing=missing)

        # A model that was fitted on named channels takes these, whether they are asked for or not.
        options = source.options if model is None else source.as_fitted(model.load(device="cpu"))
        tells_missing = source.recorded or "missing" not in reading  # else it is not recorded
        wanted = made_of.model if model is None else hash_of(model.path)
        if tells_missing and is_current(made_of, wanted, data, options, allowance):
            typer.echo(f"Vectors: {out} is up to date.")
            return out
        renewed_by = hash_at(kept) if model is None else wanted
        if lost := lost_by_renewal(made_of, renewed_by or "", data, options):
            raise InputError(
                f"{out} is there already. It {lost}. To look at it as it is: dicot explore {shlex.quote(str(out))}; "
                "to replace it, say --overwrite."
            )
        typer.echo(f"Vectors: {out} is made anew from {data}. Labels given by hand stay in their own file.")
        if named is None and model is not None:
            typer.echo(f"Model: {kept}, as before. To fit a new one: --overwrite.")

    if model is None:
        model = default_model(out, load, device="auto", missing=missing, overwrite=overwrite)
    if source.corpus is not None:
        embed_shards(model, model.load, source.corpus, out, "auto", None, overwrite, {})
    else:
        embed_source(model, source, out)
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
