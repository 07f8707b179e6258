"""The preset "best" beside the paper's method, its rivals and controls, and the preset without one of its parts."""

from dataclasses import replace
from typing import Any

from dicot.data.datasets import DATASETS, stand_ins
from dicot.data.datasets.names import DEVELOPMENT, LARGE, UCR, UEA
from dicot.judge.bench.crossing import Entry, SuiteOptions, controls, cross, whole
from dicot.judge.evaluation.contenders import Contender
from dicot.judge.evaluation.jobs import Job
from dicot.judge.protocols import PER_SEED

SEEDS = (1, 2, 3)
PRESET = {"preset": "best"}
METHOD = "across"  # the preset's own
SCORED = ("ridge", "linear", "few_1pct", "few_5", "few_10", "semi_1pct", "semi_5", "semi_10", "knn_all", "clustering")
COST = "cost"  # the protocol that measures a fit
RIVALS = ("dicot", "tstcc", "cost", "tnc", "minirocket")

PARTS_SCORED = ("ridge", "linear", "few_5", "semi_5", "clustering")
VIEWS = ("noise", "scale", "offset", "mask", "crop", "channel_drop")
BARE: dict[str, Any] = {"pooling": "mean", "calibrate": False, "bank": 0, "n_components": 0}


def _best(name: str, params: dict[str, Any] | None = None, **settings: Any) -> Contender:
    return Contender(name, METHOD, params or {}, {**PRESET, **settings})


# From the paper's method to the preset, then the preset with a part less, and with another one. No name has a comma,
# so that --only takes it.
VARIANTS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("dicot", "dicot"),
        Contender("best method alone", METHOD),  # the paper's recipe and pooling
        _best("best without rich features", **BARE),
        Contender("best by dicot", "dicot", {}, PRESET),  # the paper's method, everything else is the preset's
        Contender("best untrained", "calibrated", {}, PRESET),
        _best("best"),
        *(_best(f"best without {view}", {view: 0.0}) for view in VIEWS),
        _best("best at tau 0.1", {"temperature": 0.1}),
        _best("best at tau 0.5", {"temperature": 0.5}),
        _best("best by batches of 32", batch_size=32),
        _best("best by the mean", pooling="mean"),
        _best("best without bank", bank=0),
        _best("best with a bank of 2016", bank=2016),
        _best("best without compression", n_components=0),
        _best("best with calibration", calibrate=True),
    )
}


def at_hand() -> list[str]:
    """Every archive set on this machine, and the paper's large sets or what stands in for them."""
    here = {one.name for one in DATASETS.values() if one.is_here()}
    large = [found for name in LARGE for found in ([name] if name in here else stand_ins(name))]
    return [*(name for name in (*UCR, *UEA) if name in here), *large]


def best(options: SuiteOptions) -> list[Job]:
    """The preset "best" beside Di-COT, rivals, controls and MiniRocket on all sets at hand, by ten protocols.

    What the preset and Di-COT cost is measured by fits of their own, with one seed.
    """
    entries: list[Entry] = [(_best("best"), SCORED), *((Contender(name, name), SCORED) for name in RIVALS)]
    pairs = [whole(name) for name in options.sets or at_hand()]
    measured: list[Entry] = [(_best("best"), (COST,)), (Contender("dicot", "dicot"), (COST,))]
    return [
        *cross("best", [*entries, *controls(*SCORED)], pairs, SEEDS, _per_seed(options)),
        *cross("best", measured, pairs, SEEDS[:1], _per_seed(options)),
    ]


def best_ablation(options: SuiteOptions) -> list[Job]:
    """The preset "best" without one of its parts or with another one, on the sets that may be chosen on."""
    entries: list[Entry] = [(variant, PARTS_SCORED) for variant in VARIANTS.values()]
    entries += [*controls(*PARTS_SCORED), (Contender("minirocket", "minirocket"), PARTS_SCORED)]
    pairs = [whole(name) for name in options.sets or DEVELOPMENT]
    return cross("best_ablation", entries, pairs, SEEDS, _per_seed(options))


def _per_seed(options: SuiteOptions) -> SuiteOptions:
    """Draw the labelled cases anew with each seed: the spread then shows them too."""
    return replace(options, subsets=options.subsets or PER_SEED)
