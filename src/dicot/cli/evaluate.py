"""dicot evaluate: score a method or a saved model beside the controls."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_data, check_model, check_output_folder
from dicot.cli.sources import find_source
from dicot.cli.tables import say, show_blocks
from dicot.core import __version__
from dicot.core.errors import InputError, WrongCallError, lookup

if TYPE_CHECKING:
    from dicot.data import Split, Windows
    from dicot.judge.evaluation import Contender, Evaluation
    from dicot.judge.evaluation.jobs import Unit
    from dicot.judge.protocols.network import Fitted
    from dicot.judge.report.verdict import Trial, Verdict
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.source import DataSource

RIVAL = "minirocket"  # beside presets, where aeon is installed
BY_FOREST = ("stats-spectrum", "forest")  # beside presets: statistics and spectrum, and their own classifier
WITHOUT_MODEL = (
    "{} is no model that dicot keeps. In Python: RandomForestClassifier(300).fit(StatsSpectrum().fit(X).transform(X), "
    "y), with StatsSpectrum from dicot.judge.classical. What is kept and drawn here is {}, the best of the models."
)
# Few labels, all labels, neighbours and clusters: the questions that a user has. All protocols of the papers take
# minutes even on a small folder. The first one decides, because few labels are what most users have.
USUAL_PROTOCOLS = "few_5,ridge,knn_all,clustering"
CONTROL = "random"  # the only one beside what is compared by default, to keep the time short
NO_GROUPS = (
    "the data name no groups (people, devices, recordings), so windows of one recording may be in both parts and "
    "scores too high. Name the column with --group, or store an array `group` in the .npz."
)


@opt.reads
def evaluate(
    data: opt.DataArgument,
    model: Annotated[Path | None, typer.Option(help="Score this saved model instead of training one.")] = None,
    method: Annotated[str | None, typer.Option(help="Methods, separated by commas, or all.")] = None,
    preset: Annotated[str | None, typer.Option(help="Presets; default: instant,best, or paper with --method.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, scores.csv, model and vectors.npz.")] = None,
    protocols: Annotated[
        str, typer.Option(help="See `dicot list protocols`; separated by commas, or all. The first one decides.")
    ] = USUAL_PROTOCOLS,
    seeds: Annotated[str, typer.Option(help="Of training and of the draws of labelled cases, with commas.")] = "1",
    steps: opt.Steps = None,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
    *,
    said: opt.Settings,
) -> None:
    """Compare the presets, or what is named, with baselines and untrained controls, and say which to use.

    Without further options these are compared: instant; best, where there are cases enough to train on (500), for at
    most two minutes; MiniRocket, where aeon is installed; statistics and a spectrum, by a random forest; and the
    untrained control. A PRESET, METHOD or MODEL that is named stands beside both controls and both raw features.

    --set takes what `dicot pretrain --set` takes, and: holdout, the share of cases to hold out where DATA has no test
    part; split_seed, which of them; subsets, per-seed or authors, which labelled cases are drawn.
    """
    numbers = opt.seeds_in(seeds)
    check_data(data)
    if model is not None:
        check_model(model)
    check_output_folder(out, overwrite=overwrite)

    from dicot.judge.evaluation import distinct, saved, with_controls
    from dicot.judge.evaluation import evaluate as score
    from dicot.judge.protocols import PROTOCOLS, every_protocol
    from dicot.judge.report.evaluation import write_evaluation
    from dicot.judge.report.page import need_packages
    from dicot.judge.report.verdict import verdict

    names = PROTOCOLS if protocols == "all" else opt.names_in(protocols)
    with opt.checking_options():
        chosen = [lookup(every_protocol(), name, "protocol")() for name in names]
    reading, settings = said.take(*opt.READING), said.take_model()
    run = {"holdout": 0.3, "split_seed": 0, "subsets": "", **said.take("holdout", "split_seed", "subsets")}
    if out is not None:  # before anything is trained for it
        need_packages()
    source = find_source(data, reading, allowance=said.allowance)
    policies = said.take("unequal") | opt.given(missing=reading.get("missing"))
    fitted: Any = None
    if model is None:
        settings |= {**opt.given(steps=steps), "scale": source.scale}
        subjects = _trained(method, preset, settings, said)
    else:
        from dicot.judge.evaluation.contenders import registered
        from dicot.model.estimator import TimeSeriesEmbedder

        wrong = [*settings, *opt.given(method=method, preset=preset, steps=steps, scale=reading.get("scale"))]
        if wrong:
            raise WrongCallError(
                f"A saved model brings its own settings, and its controls take them too; got {', '.join(wrong)}. Leave "
                "that out, or leave out --model to train one."
            )
        said.rest()
        fitted = TimeSeriesEmbedder.from_pretrained(model, device=device)
        policies = {**_policies(fitted), **policies}
        name = model.resolve().name
        subjects = [saved(f"saved {name}" if name in registered() else name, fitted)]
    source = source if fitted is None else replace(source, options=source.as_fitted(fitted))
    whole, split, column, warning = _load(source, policies, run["holdout"], run["split_seed"])
    by_default = model is None and method is None and preset is None
    if by_default:
        subjects = [one for one in subjects if _can_train(one, len(split.train), settings)]
    everyone = with_controls(subjects)
    if by_default:
        added = everyone[len(subjects) :]
        everyone = [*subjects, *(one for one in added if one.name.split(" ")[0] == CONTROL)]
    warning = _announce(split, warning, column)
    different, same = distinct(chosen, split)
    for name, others in same.items():
        typer.echo(f"  {', '.join(others)}: the same as {name}, because no class has more training cases than that")
    typer.echo(_comparison(everyone, [protocol.name for protocol in different], len(numbers)))
    how = {"subsets": run["subsets"], "device": device, "on_fit": _say}
    result = score(split, everyone, different, numbers, controls=False, **how)
    trial = _trial(split, everyone, result, column)
    found = verdict(trial)
    hero = _hero(trial, [one.name for one in subjects if not one.classical]) if by_default else subjects[0].name
    next_steps = _next_steps(data, said, out, model, result.models.get(hero), len(numbers))
    _show(found, trial, result.fixed)
    if found.use[:1] == (" + ".join(BY_FOREST),):
        say(WITHOUT_MODEL.format(found.use[0], hero))
    if out is not None:
        facts = {
            "data set": f"{split.name}, {_sizes(split)} (fingerprint {split.train.fingerprint()})",
            "training and test part": split.how,
            "version": f"dicot {__version__}",
            "command": shlex.join(["dicot", *sys.argv[1:]]),
        }
        for path in write_evaluation(
            out,
            split,
            hero,
            result,
            trial,
            found,
            steps=next_steps,
            facts=facts,
            contenders={one.name: one.about for one in everyone},
            classes=_class_names(data, split),
            warning=warning,
        ):
            typer.echo(f"Wrote {path}")
        _write_vectors(out, source, policies, whole, hero, result.models[hero])
    typer.secho("What to do next", bold=True)
    for why, command in next_steps:
        typer.echo(f"  {why}:\n    {command}")


def _load(
    source: "DataSource", policies: dict[str, Any], holdout: float, split_seed: int
) -> tuple["Split", "Split", str, str]:
    """Return DATA whole and in two parts, what their groups are called, and a warning."""
    from dicot.data import Split, hold_out
    from dicot.data.labels import name_of_groups

    if source.corpus is not None:
        raise InputError(f"{source.data} is a corpus. Evaluate the recordings that it was built of.")
    if not source.recorded:
        whole = source.split((holdout, split_seed), **policies)
    elif "label" in source.options:
        whole = Split(source.windows(), name=Path(source.data).expanduser().resolve().name)
    else:
        raise WrongCallError(f"Recordings of {source.data} are scored by labels. Name their column with --label.")
    split, warning, column = whole, "", source.options.get("group")
    if split.test is None:
        parts = hold_out(whole.train, holdout, split_seed, column=column)
        split = replace(parts, family=whole.family, name=whole.name)
        warning = NO_GROUPS if split.train.group is None else ""
    return whole, split, name_of_groups(split.train.group, split.train.recording, column), warning


def _policies(fitted: "TimeSeriesEmbedder") -> dict[str, Any]:
    """How the data are made what the model takes, by the model's own rules."""
    how = fitted.preparation_
    own = {name: value for name in ("unequal", "missing") if (value := getattr(how, name)) != "error"}
    return own | ({"length": how.n_times} if how.unequal == "resample" else {})


def _trained(
    methods: str | None, wanted: str | None, settings: dict[str, Any], said: opt.Settings
) -> "list[Contender]":
    """Methods that are trained here, with what a preset says, or presets with their own methods."""
    from dicot.judge.evaluation import contender, with_own_classifier
    from dicot.methods import METHODS
    from dicot.model.presets import BEST, INSTANT, PAPER, find_preset, preset_name

    usual = [preset_name(None, methods)]
    if methods is None:
        usual = [INSTANT.name, BEST.name]
    presets = [find_preset(name) for name in opt.names_in(wanted) or usual]
    if methods is None:  # the paper's is called by its method, as ever
        names = [one.method if one.name == PAPER.name else one.name for one in presets]
        kinds = [one.method for one in presets]
    elif len(presets) > 1:
        raise WrongCallError(
            f"--method is for one preset; got {', '.join(one.name for one in presets)}. Leave one out."
        )
    else:
        names = kinds = list(METHODS) if methods == "all" else list(opt.names_in(methods))
        settings = {**settings, "preset": presets[0].name}
    params = said.rest([METHODS[kind] for kind in kinds if kind in METHODS])
    if params and len(names) > 1:
        raise WrongCallError(
            f"{', '.join(params)}: a setting of one method, and there are {', '.join(names)}. Name one with --method "
            "or --preset."
        )
    subjects = [contender(name, method_params=params, **settings) for name in names]
    if methods is None:
        rivals = [contender(RIVAL, **settings)] if find_spec("aeon") is not None else []
        subjects += [*rivals, with_own_classifier(*BY_FOREST)]
    return subjects


def _can_train(one: "Contender", n_cases: int, settings: dict[str, Any]) -> bool:
    """Tell whether a preset differs from the others with so many cases: `best` is `instant` where they are few."""
    from dicot.model.presets import find_preset

    if one.classical or settings.keys() & {"steps", "encoder", "dim"}:
        return True
    return n_cases >= find_preset(str(one.settings["preset"])).fewest


def _comparison(everyone: "Sequence[Contender]", protocols: Sequence[str], n_seeds: int) -> str:
    """Say before it begins what is compared, how many fits that is, and what takes long."""
    from dicot.core.errors import listed
    from dicot.model.presets import PRESETS

    n_fits = sum(1 if contender.fixed else n_seeds for contender in everyone)
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    work = f"{n_fits} fits{seeds}, scored by {len(protocols)} protocol(s)"
    contenders = listed([contender.name for contender in everyone])
    text = f"Comparing {len(everyone)} contenders ({work}: {listed(protocols)}): {contenders}"
    for contender in everyone:
        preset = PRESETS.get(contender.name)
        # Controls have the settings of a preset too, and do not train.
        if preset is not None and preset.minutes:
            text += f". {contender.name} trains for at most {preset.minutes:g} minutes per seed"
    return text


def _hero(trial: "Trial", models: Sequence[str]) -> str:
    """Choose whose model and vectors are kept: of several presets the best by the first protocol."""
    from dicot.judge.report.verdict import Ranking

    for protocol, metric in list(trial.measures().items())[:1]:
        ranked = Ranking.of(trial, protocol, metric).names
        return next((name for name in ranked if name in models), models[0])
    return models[0]


def _announce(split: "Split", warning: str, unit: str) -> str:
    """Say what is scored and how it was split; the warnings come back for the report."""
    from dicot.core.errors import listed
    from dicot.data.splits import shared_groups

    typer.echo(f"{split.name}: {_sizes(split)}")
    typer.echo(f"  training and test part: {split.how}")
    if both := shared_groups(split):
        warning = f"{len(both)} {unit}(s) have cases in both parts, so scores may be too high: {listed(both)}."
    if warning:
        opt.warn(warning)
    return warning


def _say(unit: "Unit", fitted: "Fitted | Exception") -> None:
    if isinstance(fitted, Exception):
        what = f"{type(fitted).__name__}: {fitted}"
    else:
        steps = getattr(getattr(fitted.model, "recipe_", None), "steps", 0)
        what = f"{f'{steps} steps, ' if steps else ''}{fitted.seconds:.1f} s to fit"
    for seed in unit.seeds:
        typer.echo(f"  {unit.first.contender.name}, seed {seed}: {what}")


def _trial(split: "Split", contenders: "Sequence[Contender]", result: "Evaluation", unit: str) -> "Trial":
    from dicot.data.collection import labelled_cases
    from dicot.judge.report.frame import frame
    from dicot.judge.report.verdict import Trial
    from dicot.judge.result import BASELINE

    assert split.test is not None
    test = labelled_cases(split.test)
    together = test.group if test.group is not None else test.recording
    data = frame(row for one in result.results for row in one.tidy())
    # Whether training pays is asked of what is trained here.
    roles = {one.name: BASELINE if one.learned_elsewhere else one.role for one in contenders}
    return Trial(data, roles, result.right, together, len(test), unit)


def _next_steps(
    data: str, said: opt.Settings, out: Path | None, model: Path | None, hero: object, n_seeds: int
) -> list[tuple[str, str]]:
    """Why and how to go on from here: embed and explore what was kept, or the same command that keeps something."""
    again, steps = ["dicot", *sys.argv[1:]], []
    if out is None and model is None:
        steps.append(("Keep the model, its vectors and a report", [*again, "--out", "report"]))
    if out is not None:
        steps.append(("See, search and label the cases on a map", ["dicot", "explore", str(out / "vectors.npz")]))
    if model is not None or (out is not None and hasattr(hero, "save_pretrained")):
        reading = said.words(opt.READING)
        words = ["dicot", "embed", str(model or (out or Path()) / "model"), data, *reading, "--out", "vectors.npz"]
        steps.append(("Embed these data, or others, with the model", words))
    if n_seeds == 1:
        # The report of this run is there by then.
        replacing = ["--overwrite"] if out is not None and "--overwrite" not in again else []
        steps.append(("Be surer, with more seeds", [*again, "--seeds", "1,2,3,4,5", *replacing]))
    return [(why, shlex.join(words)) for why, words in steps]


def _show(found: "Verdict", trial: "Trial", fixed: Sequence[str]) -> None:
    """Print the verdict, then the scores and what every protocol is."""
    from dicot.judge.report.evaluation import protocol_texts
    from dicot.judge.report.frame import shown_metrics
    from dicot.judge.report.scores import evaluation_table

    typer.echo()
    say(found.sentence, bold=True)
    for sentence in found.more:
        say(sentence)
    typer.echo()
    data = trial.data
    names = shown_metrics(data)
    show_blocks(evaluation_table(data[data.metric.isin(names)], fixed))
    if others := [name for name in data.metric.unique() if name not in names]:
        say(f"In scores.csv of --out: {', '.join(others)}.")
    for name, text in protocol_texts(data).items():
        say(f"{name}: {text}", indent=2)


def _class_names(data: str, split: "Split") -> dict[object, str]:
    """What the classes of a data set by name are called, where its card says so; other labels are names themselves."""
    from dicot.data.datasets import card, is_path

    y = split.train.y
    if is_path(data) or y is None or y.dtype.kind not in "iu":
        return {}
    return dict(enumerate(card(data).labels))


def _sizes(split: "Split") -> str:
    from dicot.data.labels import labelled

    assert split.test is not None
    train, test = split.train, split.test
    text = (
        f"{len(train)} training and {len(test)} test cases, {train.n_channels} channel(s), {train.n_times} time steps"
    )
    counts = [len(part) - int(labelled(part.y).sum()) for part in (train, test) if part.y is not None]
    if any(counts):
        text += f"; {counts[0]} training and {counts[-1]} test cases have no label and are not scored"
    return text


def _write_vectors(
    out: Path, source: "DataSource", policies: dict[str, Any], split: "Split", hero: str, model: Any
) -> None:
    """Write the vectors of all cases, in the order of DATA, with what finds their series again."""
    from dicot.data.datasets import is_path
    from dicot.judge.evaluation.scoring import cases_for
    from dicot.model.files import model_hash
    from dicot.store.embedding import embed_recordings
    from dicot.store.vectors import MadeOf, write_vectors

    def embed(part: "Windows") -> Any:
        return model.transform(cases_for(model, part)).astype("float32")

    path, data = out / "vectors.npz", source.data
    maker = model_hash(out / "model") if hasattr(model, "save_pretrained") else hero
    if source.recorded:
        options = {"channels": split.train.channels, **source.options}
        embed_recordings(embed, maker, path, data, options, allowance=source.allowance)
    else:
        parts = {"": split.train} if split.test is None else {"train": split.train, "test": split.test}
        known = {name: {"X": embed(part), **opt.given(y=part.y, group=part.group)} for name, part in parts.items()}
        options = source.options if is_path(data) else policies  # a file's cases are found as it holds them
        write_vectors(path, known, MadeOf.of_cases(data, options, split.train.channels, maker))
    typer.echo(f"Wrote {path}")
