"""dicot explore: a map of all windows in a browser, to look at, search and label."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt
from dicot.core.errors import InputError, lookup


def explore(
    vectors: opt.VectorsArgument,
    data: opt.Series = None,
    labels: Annotated[Path | None, typer.Option(help="The file of labels; default: one beside VECTORS.")] = None,
    map_kind: Annotated[str, typer.Option("--map", help="tsne, or umap, which needs the extra umap.")] = "tsne",
    port: Annotated[int, typer.Option(help="Where to serve on this machine; 0: a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    export: Annotated[Path | None, typer.Option(help="Write a page to send, and serve nothing.")] = None,
    set_: opt.Set = None,
) -> None:
    """Show VECTORS as a map in the browser, on this machine alone; labels go to a file that `dicot label` reads.

    Map, clusters and outlier scores are made once and kept beside VECTORS. --set takes how --data are read, such as
    rate=50, and with --export sample, the number of windows to draw.
    """
    from dicot.core.storage import check_writable
    from dicot.explorer.page import load_assets, rows_of_page, write_page
    from dicot.explorer.workspace import open_workspace
    from dicot.store.vectors import read_vectors
    from dicot.use.projection import LANDMARKS

    said = opt.Settings(set_)
    options, sample = said.take(*opt.READING), said.take("sample").get("sample")
    said.rest()
    # What can be refused is refused before the map is made, which takes minutes.
    lookup(LANDMARKS, map_kind, "map")
    assets, rate = load_assets(), options.pop("rate", None)
    opened = {"data": data, "options": options, "rate": rate, "labels": labels, "map_kind": map_kind, "say": _say}
    if export is not None:
        check_writable(export)
        rows = rows_of_page(len(read_vectors(vectors)), sample)
        write_page(export, open_workspace(vectors, **opened), rows, assets)
        typer.echo(f"Wrote {export}")
        return
    if sample is not None:
        raise InputError("sample is for --export; the page that is served shows all windows. Leave it out.")
    from dicot.explorer.server import listen, serve

    with listen(port) as listener:
        serve(open_workspace(vectors, **opened), listener, assets, on_ready=_ready, open_browser=browser)
    typer.echo("Stopped.")


def _say(sentence: str) -> None:
    warning = sentence.startswith("Warning: ")
    typer.secho(sentence, fg="yellow" if warning else None, err=warning)


def _ready(address: str) -> None:
    typer.echo(f"Explorer: {address}\nThe address is for you alone. Press Ctrl-C to stop.")
