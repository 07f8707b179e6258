"""Commands that measure something; each is a function of the same name in its module."""

import sys
from importlib import import_module

import typer

MEASUREMENTS = {
    "speed": ("bench.speed.command", "Training steps and embedding beside a plain loop, as ratios."),
    "alone": ("bench.speed.alone", "What a training step of every method costs, one run at a time."),
    "exponents": ("bench.speed.exponents", "How the cost of loss and step grows with the sizes."),
    "window": ("bench.speed.latency", "Milliseconds from raw values to a vector."),
    "push": ("bench.speed.latency", "Milliseconds of a push that completes a window of a stream."),
    "costs": ("bench.speed.corpus", "What a million windows cost: the rates of `scaling`."),
    "corpus-rate": ("bench.speed.corpus", "Training steps from a corpus beside those from memory."),
    "large-index": ("bench.speed.corpus", "Exact search among vectors that are read where they lie."),
    "scaling": ("bench.speed.scaling", "The pipeline on billions of windows, reckoned."),
    "explorer": ("bench.speed.explorer", "Milliseconds of a frame of the explorer's page."),
    "segmentation": ("bench.use.segmentation", "Stretches of one activity on people not learned from."),
    "events": ("bench.use.events", "Events found from a few examples."),
    "outliers": ("bench.use.events", "Falls among the recordings of SisFall."),
}


def add_measurements(app: typer.Typer) -> None:
    """Register all of them, but import only the one that is asked for: some need extras, a browser or a GPU."""
    for name, (module, summary) in MEASUREMENTS.items():
        is_asked_for = sys.argv[1:2] == [name]
        function = getattr(import_module(module), name.replace("-", "_")) if is_asked_for else _not_asked_for
        app.command(name, help=summary)(function)


def _not_asked_for() -> None:
    """Stands in the list of commands."""
