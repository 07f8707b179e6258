"""dicot evaluate: score a method or a saved model beside the controls."""

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_data, check_model, check_output_folder
from dicot.cli.settings import Settings, checking_options
from dicot.cli.sources import find_source
from dicot.cli.tables import say, show_blocks
from dicot.core import __version__
from dicot.core.errors import WrongCallError, lookup

if TYPE_CHECKING:
    from dicot.judge.comparison import ComparedContenders, ScoredData
    from dicot.judge.evaluation import Contender
    from dicot.judge.evaluation.jobs import Unit
    from dicot.judge.protocols.base import AnyProtocol
    from dicot.judge.protocols.network import Fitted
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.source import DataSource

OWN = ("holdout", "split_seed", "subsets", "unequal")
WITHOUT_MODEL = (
    "{} is no model that dicot keeps. In Python: RandomForestClassifier(300).fit(StatsSpectrum().fit(X).transform(X), "
    "y), with StatsSpectrum from dicot.judge.classical. What is kept and drawn here is {}, the best of the models."
)
# Few labels, all labels, neighbours and clusters: the questions that a user has. All protocols of the papers take
# minutes even on a small folder. The first one decides, because few labels are what most users have.
USUAL_PROTOCOLS = "few_5,ridge,knn_all,clustering"

Steps = list[tuple[str, str]]  # what to do next: why, and the command


@final
@dataclass(frozen=True)
class ContenderOptions:
    """What is compared."""

    model: Annotated[Path | None, typer.Option(help="Score this saved model instead of training one.")] = None
    method: Annotated[str | None, typer.Option(help="Methods, separated by commas, or all.")] = None
    preset: Annotated[str | None, typer.Option(help="Presets; default: instant,best, or paper with --method.")] = None
    steps: opt.Steps = None
    device: opt.Device = "auto"

    @property
    def is_default(self) -> bool:
        return self.model is None and self.method is None and self.preset is None

    def load_model(self, settings: Settings) -> "TimeSeriesEmbedder | None":
        """Load the saved model, beside which no settings of another one make sense."""
        if self.model is None:
            return None
        from dicot.model.estimator import TimeSeriesEmbedder

        named = {"method": self.method, "preset": self.preset, "steps": self.steps}
        wrong = [*settings.of_model(), *opt.given(**named, scale=settings.reading.get("scale"))]
        if wrong:
            raise WrongCallError(
                f"A saved model brings its own settings, and its controls take them too; got {', '.join(wrong)}. Leave "
                "that out, or leave out --model to train one."
            )
        settings.of_method()
        return TimeSeriesEmbedder.from_pretrained(self.model, device=self.device)

    def to_train(self, settings: Settings, scale: str | None) -> "list[Contender]":
        """Methods or presets that are trained here."""
        from dicot.judge.comparison import NamedContenders
        from dicot.methods import METHODS

        chosen = NamedContenders.of(opt.names_in(self.method), opt.names_in(self.preset))
        params = settings.of_method([METHODS[name] for name in chosen.methods if name in METHODS])
        return chosen.contenders(self.model_settings(settings, scale), params)

    def model_settings(self, settings: Settings, scale: str | None) -> dict[str, Any]:
        return settings.of_model() | opt.given(steps=self.steps) | {"scale": scale}


@final
@dataclass(frozen=True)
class ScoringOptions:
    """How contenders are scored."""

    protocols: Annotated[
        str, typer.Option(help="See `dicot list protocols`; separated by commas, or all. The first one decides.")
    ] = USUAL_PROTOCOLS
    seeds: Annotated[str, typer.Option(help="Of training and of the draws of labelled cases, with commas.")] = "1"

    def chosen(self) -> "list[AnyProtocol]":
        from dicot.judge.protocols import PROTOCOLS, every_protocol

        names = PROTOCOLS if self.protocols == "all" else opt.names_in(self.protocols)
        with checking_options():
            return [lookup(every_protocol(), name, "protocol")() for name in names]


def evaluate(
    data: opt.DataArgument,
    contenders: ContenderOptions,
    scoring: ScoringOptions,
    reading: opt.ReadingOptions,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, scores.csv, model and vectors.npz.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare the presets, or what is named, with baselines and untrained controls, and say which to use.

    Without further options these are compared: instant; best, where there are cases enough to train on (500), for at
    most two minutes; MiniRocket, where aeon is installed; statistics and a spectrum, by a random forest; and the
    untrained control. A PRESET, METHOD or MODEL that is named stands beside both controls and both raw features.

    --set takes what `dicot pretrain --set` takes, and: holdout, the share of cases to hold out where DATA has no test
    part; split_seed, which of them; subsets, per-seed or authors, which labelled cases are drawn.
    """
    seeds = opt.seeds_in(scoring.seeds)
    check_data(data)
    if contenders.model is not None:
        check_model(contenders.model)
    check_output_folder(out, overwrite=overwrite)
    protocols = scoring.chosen()
    settings = reading.by_group(own=OWN, of_model=True)
    if out is not None:
        _need_packages_of_reports()

    source = find_source(data, settings.reading, allowance=reading.allowance)
    comparison = _compare(source, contenders, protocols, seeds, settings)
    _show(comparison)
    steps = _next_steps(data, contenders.model, reading, out, comparison.model, len(seeds))
    if out is not None:
        _write(out, comparison, steps)
    typer.secho("What to do next", bold=True)
    for why, command in steps:
        typer.echo(f"  {why}:\n    {command}")
    end(reading.allowance)


def _compare(
    source: "DataSource",
    options: ContenderOptions,
    protocols: "list[AnyProtocol]",
    seeds: tuple[int, ...],
    settings: Settings,
) -> "ComparedContenders":
    """Read the data, say what is compared, and score it."""
    from dicot.judge import comparison as compared
    from dicot.judge.evaluation import distinct, with_controls
    from dicot.judge.evaluation import evaluate as score

    model = options.load_model(settings)
    policies = opt.given(unequal=settings.own.get("unequal"), missing=settings.reading.get("missing"))
    if model is None or options.model is None:
        subjects = options.to_train(settings, source.scale)
    else:
        subjects = [compared.saved_contender(options.model, model)]
        policies = {**compared.policies_of(model), **policies}
        source = replace(source, options=source.as_fitted(model))
    holdout, split_seed = settings.own.get("holdout", 0.3), settings.own.get("split_seed", 0)
    scored = compared.ScoredData.read(source, policies, holdout, split_seed)

    if options.is_default:
        of_models = options.model_settings(settings, source.scale)
        everyone = compared.compared_by_default(subjects, len(scored.split.train), of_models)
        subjects = [one for one in subjects if one in everyone]
    else:
        everyone = with_controls(subjects)
    different, same = distinct(protocols, scored.split)
    _announce(scored, same)
    typer.echo(compared.announcement(everyone, [protocol.name for protocol in different], len(seeds)))
    evaluation = score(
        scored.split,
        everyone,
        different,
        seeds,
        controls=False,
        subsets=settings.own.get("subsets", ""),
        device=options.device,
        on_fit=_say_fit,
    )
    return compared.ComparedContenders(scored, subjects, everyone, evaluation, options.is_default)


def _need_packages_of_reports() -> None:
    """Refuse before anything is trained for a report."""
    from dicot.judge.report.page import need_packages

    need_packages()


def _announce(scored: "ScoredData", same: dict[str, list[str]]) -> None:
    """Say what is scored and how it was split."""
    typer.echo(f"{scored.split.name}: {scored.sizes()}")
    typer.echo(f"  training and test part: {scored.split.how}")
    if scored.warning:
        opt.warn(scored.warning)
    for name, others in same.items():
        typer.echo(f"  {', '.join(others)}: the same as {name}, because no class has more training cases than that")


def _say_fit(unit: "Unit", fitted: "Fitted | Exception") -> None:
    if isinstance(fitted, Exception):
        text = f"{type(fitted).__name__}: {fitted}"
    else:
        steps = getattr(getattr(fitted.model, "recipe_", None), "steps", 0)
        text = f"{steps} steps, " if steps else ""
        text += f"{fitted.seconds:.1f} s to fit"
    for seed in unit.seeds:
        typer.echo(f"  {unit.first.contender.name}, seed {seed}: {text}")


def _show(comparison: "ComparedContenders") -> None:
    """Print the verdict, then the scores and what every protocol is."""
    from dicot.judge.comparison import BY_FOREST
    from dicot.judge.report.evaluation import protocol_texts
    from dicot.judge.report.frame import shown_metrics
    from dicot.judge.report.scores import evaluation_table
    from dicot.judge.report.wording import worded

    typer.echo()
    wording = worded(comparison.verdict)
    say(wording.sentence, bold=True)
    for sentence in wording.more:
        say(sentence)
    typer.echo()
    scores = comparison.trial.data
    names = shown_metrics(scores)
    show_blocks(evaluation_table(scores[scores.metric.isin(names)], comparison.evaluation.fixed))
    others = [name for name in scores.metric.unique() if name not in names]
    if others:
        say(f"In scores.csv of --out: {', '.join(others)}.")
    for name, text in protocol_texts(scores).items():
        say(f"{name}: {text}", indent=2)
    if comparison.verdict.use[:1] == (" + ".join(BY_FOREST),):
        say(WITHOUT_MODEL.format(comparison.verdict.use[0], comparison.hero))


def _next_steps(
    data: str, model: Path | None, reading: opt.ReadingOptions, out: Path | None, kept: object, n_seeds: int
) -> Steps:
    """Why and how to go on from here: embed and explore what was kept, or the same command that keeps something."""
    again = ["dicot", *sys.argv[1:]]
    steps: list[tuple[str, list[str]]] = []
    if out is None and model is None:
        steps.append(("Keep the model, its vectors and a report", [*again, "--out", "report"]))
    if out is not None:
        steps.append(("See, search and label the cases on a map", ["dicot", "explore", str(out / "vectors.npz")]))
    if model is not None or (out is not None and hasattr(kept, "save_pretrained")):
        path = str(model or (out or Path()) / "model")
        words = ["dicot", "embed", path, data, *reading.words(), "--out", "vectors.npz"]
        steps.append(("Embed these data, or others, with the model", words))
    if n_seeds == 1:
        # The report of this run is there by then.
        replacing = ["--overwrite"] if out is not None and "--overwrite" not in again else []
        steps.append(("Be surer, with more seeds", [*again, "--seeds", "1,2,3,4,5", *replacing]))
    return [(why, shlex.join(words)) for why, words in steps]


def _write(out: Path, comparison: "ComparedContenders", steps: Steps) -> None:
    """Write the report, the model and the vectors."""
    from dicot.judge.report.evaluation import write_evaluation

    split = comparison.data.split
    facts = {
        "data set": f"{split.name}, {comparison.data.sizes()} (fingerprint {split.train.fingerprint()})",
        "training and test part": split.how,
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }
    written = write_evaluation(
        out,
        split,
        comparison.hero,
        comparison.evaluation,
        comparison.trial,
        comparison.verdict,
        steps=steps,
        facts=facts,
        contenders={one.name: one.about for one in comparison.everyone},
        classes=comparison.data.class_names(),
        warning=comparison.data.warning,
    )
    for path in written:
        typer.echo(f"Wrote {path}")
    for path in comparison.write_vectors(out):
        typer.echo(f"Wrote {path}")
