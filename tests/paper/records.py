"""Made-up rows of every suite of the paper, on stand-ins for its large sets and on some of the archives' sets."""

from tests.report.samples import CONTROLS, failed, record, several

from bench.paper.page import TITLE, contents
from bench.report.pages import to_document
from dicot.judge.report.page import drawn

METHODS = ("dicot", "catt", "cost", "infots", "simmtm", "soft", "tfc", "tnc", "ts2vec", "tstcc")
STAND_INS = ("hapt", "wisdm2019", "sleepedf-night", "mitbih-arrhythmia")
UCR = ("ACSF1", "Beef", "CBF", "Coffee", "Fish", "Wine")
UEA = ("BasicMotions", "Cricket", "ERing", "Epilepsy", "Handwriting")
EVERYONE = (*METHODS, *CONTROLS)
RAW = ("raw-mean", "raw-flat")
ABLATION = ("dicot", "w/o Overlap", "InceptionTime -> FCN")
SPLITS = (
    *(f"Global Fixed Splits (k) -> {k}" for k in (2, 5, 10, 15)),
    *(f"Uniform Splits Sampling (k_{{max}}) -> {k}" for k in (5, 10, 15, 20)),
)
POSITIVES = ("Preceding Sub-block", "Next Sub-block", "Bidirectional (Preceding + Next)")
KNN = ("knn_5", "knn_10", "knn_50", "knn_100", "knn_500")
PAIRS = (("hapt", "wisdm2019"), ("wisdm2019", "hapt"))
SEEDS = (1, 2)


def _probed(suite, sets, **more):
    return [
        *several(suite, EVERYONE, sets, **more),
        *several(suite, ["minirocket"], sets, ("linear", "ridge"), **more),
        *several(suite, RAW, sets, ("linear", "forest"), **more),
    ]


def _scaling():
    rows = [
        record("batch_scaling", name, "hapt", size * weight, "cost", metric, batch_size=size, steps=50)
        for name, weight in (("dicot", 1.0), ("catt", 2.0), ("catt without chunks", 3.0))
        for size in (8, 64, 512)
        for metric in ("step_ms", "peak_mib", "fit_seconds")
    ]
    full = "CUDA out of memory"
    rows = [failed(r, full) if "without" in r["contender"] and r["batch_size"] == 512 else r for r in rows]
    return rows + several("batch_scaling", CONTROLS, ("hapt",), ("cost",), ("fit_seconds",))


def everything():
    """Rows of all suites, as a ledger might hold them."""
    rows = [*_probed("ucr", UCR), *_probed("uea", UEA)]
    rows += several("ucr", METHODS, UCR, schedule="per_epoch") + several("uea", METHODS, UEA, schedule="per_epoch")
    rows += _probed("large", STAND_INS, seeds=SEEDS)
    rows += several("large", ["end-to-end"], STAND_INS, ("finetune-100",), seeds=SEEDS)
    rows += several("low_label", (*EVERYONE, "minirocket", *RAW), STAND_INS, ("few_1pct",), seeds=SEEDS)
    rows += several("low_label", ["end-to-end"], STAND_INS, ("finetune-1",), seeds=SEEDS, fit_seconds=51.0)
    rows += several("knn", EVERYONE, STAND_INS, KNN, seeds=SEEDS)
    rows += several("clustering", (*EVERYONE, "supervised"), STAND_INS, ("clustering",), ("nmi", "ari"), seeds=SEEDS)
    rows += several("transfer", EVERYONE, PAIRS, seeds=SEEDS)
    everywhere = (*STAND_INS, *UCR, *UEA)
    rows += several("ablation", (*ABLATION, *CONTROLS), everywhere)
    rows += several("extended_ablation", (*SPLITS, *CONTROLS), everywhere)
    rows += several("positive_selection", (*POSITIVES, *CONTROLS), everywhere)
    rows += several("positive_selection", (*POSITIVES, *CONTROLS), STAND_INS, ("clustering",), ("nmi", "ari"))
    return rows + _scaling()


def paper_markdown(data, beside=None, only=()):
    """The text of the page's report.md, for which no figure has to be drawn."""
    facts, banner, parts = contents(data, beside, only)
    return to_document(TITLE, facts, banner, drawn(parts, named_only=True))
