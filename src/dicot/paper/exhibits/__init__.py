"""EXHIBITS: every figure and table of the paper, in its order, with a caption in our words and the suites behind it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from dicot.judge.report.page import Part
from dicot.paper.exhibits import figures, tables
from dicot.paper.exhibits.records import Records


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of the paper: what it shows, whose results it needs, and its parts."""

    title: str
    caption: str
    parts: Callable[[Records], Iterator[Part]]
    suites: tuple[str, ...] = ()  # empty: made of something else than results
    families: tuple[str, ...] = ()  # of the data sets that it is about
    source: str = ""  # what it is made of where that is no result

    def name(self, key: str) -> str:
        """Say its number as a reader does: table3 is Table 3."""
        kind = key.rstrip("0123456789")
        return f"{kind.capitalize()} {key.removeprefix(kind)}"


MAPS = "figure5"  # made of a file of maps, not of a suite
EVERYWHERE = ("large", "ucr", "uea")


def _neighbours(count: int) -> Exhibit:
    return Exhibit(
        f"Nearest neighbour, {count} labelled cases per class",
        f"Accuracy of one nearest neighbour among {count} labelled training cases of each class, on every large set.",
        partial(tables.scores_part, suite="knn", family="large", labels=f"knn_{count}"),
        ("knn",),
        ("large",),
    )


EXHIBITS: dict[str, Exhibit] = {
    "figure1": Exhibit(
        "Accuracy with 1 % of the labels against training time",
        "Each point is a contender: the time it takes to train on all large sets together, and the accuracy of a "
        "linear probe on its frozen encoder with one label in a hundred, averaged over sets and seeds. Supervised is "
        "an encoder trained end to end on the same labelled cases.",
        figures.time_part,
        ("low_label",),
        ("large",),
    ),
    "figure2": Exhibit(
        "The method",
        "A case is cut into k overlapping sub-blocks; each has to find the one before it by similarity.",
        figures.method_part,
        source="the method itself",
    ),
    "table1": Exhibit(
        "Linear probe on the large sets",
        "Accuracy of logistic regression on frozen embeddings with all training labels, mean and spread over seeds, "
        "the average over sets with the paper's 95 % interval (D-61), and the time to fit. Supervised is trained end "
        "to end; raw data, random forest and MiniRocket have no network.",
        partial(tables.scores_part, suite="large", family="large", hours=True),
        ("large",),
        ("large",),
    ),
    "table2": Exhibit(
        "Both archives",
        "Average accuracy, average rank among these twelve and time to fit over the UCR and UEA archives. The paper's "
        "MiniRocket is refitted per batch and scored by a forest (D-37), ours is fitted once and scored by ridge "
        "regression; its random forest sees the means of the channels (D-36).",
        tables.archives_part,
        ("ucr", "uea"),
        ("ucr", "uea"),
    ),
    "figure3": Exhibit(
        "Critical difference over all data sets",
        "Average ranks of the ten self-supervised methods by linear probe over the data sets of all families at once. "
        "Methods that a bar joins do not differ at 5 %.",
        figures.ranks_part,
        EVERYWHERE,
        EVERYWHERE,
    ),
    "table3": Exhibit(
        "Linear probe with 1 % of the labels",
        "The same as Table 1 with one labelled case in a hundred, the classes in proportion; Supervised is trained end "
        "to end on these alone.",
        partial(tables.scores_part, suite="low_label", family="large", labels="few_1pct"),
        ("low_label",),
        ("large",),
    ),
    "figure4": Exhibit(
        "Nearest neighbour by number of labelled cases",
        "Accuracy of one nearest neighbour among 5 to 500 labelled cases per class, averaged over the large sets: "
        "nothing is trained on the embeddings.",
        figures.neighbours_part,
        ("knn",),
        ("large",),
    ),
    "table4": Exhibit(
        "Clustering, averages",
        "k-means on the embeddings of the test part, compared with the classes: normalised mutual information, "
        "adjusted Rand index, and the rank over both on all sets. Supervised_B is the same encoder trained "
        "with all labels.",
        tables.clustering_average_part,
        ("clustering",),
        ("large",),
    ),
    MAPS: Exhibit(
        "Maps of the embeddings",
        "t-SNE of the embeddings of every test case, coloured by class, by each method, an encoder trained with labels "
        "and the untrained ones. The paper shows SKODA. A map is for looking at: distances in it measure nothing.",
        figures.maps_part,
    ),
    "table5": Exhibit(
        "Transfer between data sets",
        "Trained on one set's accelerometer, probed with all labels on another's.",
        partial(tables.scores_part, suite="transfer", family="transfer"),
        ("transfer",),
        ("transfer",),
    ),
    "table6": Exhibit(
        "Ablation",
        "Di-COT without one of its parts, or with another in its place: averages by linear probe over the families of "
        "data sets.",
        partial(tables.variants_part, suite="ablation"),
        ("ablation",),
        EVERYWHERE,
    ),
    "table7": Exhibit(
        "Which sub-block is the positive one",
        "The one before, the one after, or both: averages by every protocol.",
        partial(tables.variants_part, suite="positive_selection"),
        ("positive_selection",),
        (*EVERYWHERE, "transfer"),
    ),
    "figure6": Exhibit(
        "Cost against the batch size",
        "Time per step and peak memory of Di-COT and CaTT for batches of 8 to 512 cases. The time is that of a short "
        "run, what it builds on the way included, divided by its steps. The loss of CaTT compares all time steps of a "
        "batch with one another; ours does that in chunks, and without chunks as its authors do.",
        figures.scaling_part,
        ("batch_scaling",),
        ("scaling",),
    ),
    "table8": Exhibit(
        "The large data sets",
        "Windows after preparation, and what stands in for a set that is not at hand.",
        tables.data_sets_part,
        source="the cards of the data sets",
    ),
    "table9": Exhibit(
        "Clustering on every data set",
        "What Table 4 averages.",
        tables.clustering_part,
        ("clustering",),
        ("large",),
    ),
    "table10": Exhibit(
        "Settings of Di-COT",
        "Temperature, overlap, and the number of sub-blocks: the same for every step (fixed k), or drawn from 2 "
        "to k_max.",
        partial(tables.variants_part, suite="extended_ablation"),
        ("extended_ablation",),
        EVERYWHERE,
    ),
    "figure7": Exhibit(
        "Training time against the number of sub-blocks",
        "Time to fit Di-COT, summed over all families of data sets, by the number of sub-blocks.",
        figures.splits_part,
        ("extended_ablation",),
        EVERYWHERE,
    ),
    **{f"table{11 + place}": _neighbours(count) for place, count in enumerate((5, 10, 50, 100, 500))},
    "table16": Exhibit(
        "Every UEA set",
        "Accuracy of a linear probe on every set of the multivariate archive that the paper uses.",
        partial(tables.scores_part, suite="uea", family="uea"),
        ("uea",),
        ("uea",),
    ),
    "table17": Exhibit(
        "Every UCR set",
        "Accuracy of a linear probe on every set of the univariate archive that the paper uses.",
        partial(tables.scores_part, suite="ucr", family="ucr"),
        ("ucr",),
        ("ucr",),
    ),
}
