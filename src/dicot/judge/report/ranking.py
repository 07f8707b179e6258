"""Who is ahead by a protocol, by how much, and whether that is more than noise."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.judge.protocols import find_metric
from dicot.judge.protocols.base import CLASSIFICATION_METRICS, COSTS
from dicot.judge.report.frame import NOISE, direction
from dicot.judge.report.scores import equal_protocols
from dicot.judge.report.stats import Noise, gap_interval, mean_noise, paired_noise, shares_noise
from dicot.judge.report.tables import signed
from dicot.judge.result import BASELINE, CONTROL, PRETRAINED, SUPERVISED

Right = Mapping[tuple[str, str, int], NDArray[np.float32]]  # by contender, protocol and seed, as an Evaluation has it

ACCURACY = CLASSIFICATION_METRICS[0].name  # a share of the test cases, in percent
PERCENT = tuple(metric.name for metric in CLASSIFICATION_METRICS)
SEEDS, SETS = "seeds", "data sets"  # what a mean may be over
ENOUGH_SETS = 5  # for an interval: differences on fewer say nothing of those on others
ENOUGH_GROUPS = 3  # of test cases, likewise: people, devices, recordings
AS_GOOD = 0.02  # of the best's score: whoever is farther behind is not as good, whatever noise leaves open
LEARNED, UNTRAINED = (PRETRAINED, SUPERVISED), (CONTROL, BASELINE)


@dataclass(frozen=True)
class Trial:
    """What a verdict is about: the scores, who is who, and what is known of the test part."""

    data: pd.DataFrame  # the tidy frame of the scores
    roles: Mapping[str, str]  # of each contender
    right: Right = field(default_factory=dict)
    groups: NDArray[np.generic] | None = None  # (N,) of the labelled test cases: cases of one group vary together
    n_test: int = 0  # labelled test cases; 0 where that is not known
    together: str = "group"  # what a group is: a recording, a subject

    def measures(self) -> dict[str, str]:
        """Give every protocol's first metric, but no costs: nobody is better by these. What is equal counts once."""
        names = [name for name in self.data.metric.unique() if find_metric(name).headline and name not in COSTS]
        repeated = [name for alike in equal_protocols(self.data) for name in alike[1:]]
        first = self.data[self.data.metric.isin(names) & ~self.data.protocol.isin(repeated)].drop_duplicates("protocol")
        return dict(zip(first.protocol, first.metric, strict=True))


@dataclass(frozen=True)
class Ranking:
    """The contenders by one protocol and metric, those with all their scores, best first."""

    trial: Trial
    protocol: str
    metric: str
    scores: pd.DataFrame  # (seed, draw) x contender, best first
    unit: str = SEEDS  # what the first level of the rows counts: seeds, or the data sets of a benchmark

    @classmethod
    def of(cls, trial: Trial, protocol: str, metric: str) -> "Ranking":
        """Rank whoever has a score for every seed and draw.

        At equal scores the quicker to fit comes first, and controls come last: an untrained network is there to
        compare with, and nobody should be told to use it because a test was too easy.
        """
        results = trial.data[(trial.data.protocol == protocol) & (trial.data.metric == metric)]
        table = results.pivot(index=["seed", "draw"], columns="contender", values="value").dropna(axis=1)
        seconds = results.groupby("contender").fit_seconds.mean().fillna(0.0)

        def in_a_tie(name: str) -> tuple[bool, float]:
            return trial.roles[name] == CONTROL, seconds[name]

        return cls(trial, protocol, metric, table[sorted(table.columns, key=in_a_tie)]).ordered()

    def ordered(self) -> "Ranking":
        """Put the best first; what is equal stays in its order."""
        merits = (direction(find_metric(self.metric)) * self.scores.mean()).round(NOISE)
        return replace(self, scores=self.scores[(-merits).sort_values(kind="stable").index])

    @property
    def names(self) -> list[str]:
        return list(self.scores.columns)

    @property
    def measure(self) -> str:
        return f"{self.protocol} {self.metric}"

    @property
    def one_seed(self) -> bool:
        return self.unit == SEEDS and self.trial.data.seed.nunique() == 1

    def by_role(self, *roles: str) -> list[str]:
        """Those with one of these roles, best first."""
        return [name for name in self.names if self.trial.roles[name] in roles]

    def mean(self, name: str) -> float:
        return float(self.scores[name].mean())

    def shown(self, name: str) -> str:
        return f"{self.mean(name):.{find_metric(self.metric).decimals}f}"

    def gap(self, ahead: str, rival: str) -> "Gap":
        """Compare two: paired over seeds or draws and over test cases, as far as these are known."""
        trial, gaps = self.trial, direction(find_metric(self.metric)) * (self.scores[ahead] - self.scores[rival])
        value, n_seeds = float(gaps.mean()), gaps.index.unique("seed").size
        if few := self.few_groups():
            return Gap(self, ahead, rival, value, math.nan, math.nan, few)
        centre, noise, over = value, list[Noise](), []
        if (cases := self._cases(ahead, rival)) is not None:
            share, variance, freedom = paired_noise(cases, trial.groups)
            centre = 100 * share
            noise.append((100**2 * variance, freedom))
            many = f" in {int(freedom) + 1} {trial.together}s" if trial.groups is not None else ""
            over.append(f"{len(cases):,} test cases{many}")
        elif self.metric == ACCURACY and trial.n_test > 1:
            variance, freedom = shares_noise([self.mean(name) / 100 for name in (ahead, rival)], trial.n_test)
            noise.append((100**2 * variance, freedom))
            over.append(f"the binomial error of {trial.n_test:,} test cases")
        if len(gaps) > 1 and (self.unit == SEEDS or n_seeds >= ENOUGH_SETS):
            noise.append(self._run_noise(gaps))
            draws = len(gaps) // n_seeds
            many = f"{n_seeds} {self.unit}" + (f" with {draws} draws of labels each" if draws > 1 else "")
            over.append(many if n_seeds > 1 else f"{draws} draws of labels")
        low, high = gap_interval(value, noise, centre, max(1, len(self.names) - 1))
        if self.metric in PERCENT:
            low, high = max(low, -100.0), min(high, 100.0)
        one = "one seed" if self.unit == SEEDS else f"{n_seeds} {self.unit}"
        return Gap(self, ahead, rival, value, low, high, " and ".join(over) or one)

    def alike(self, first: str, others: Sequence[str]) -> tuple[str, ...]:
        """The first, and up to two others that are about as good: within noise, and not far behind."""
        gaps = [self.gap(first, name) for name in others if name != first]
        return (first, *[gap.rival for gap in gaps if gap.known and not gap.settled and not gap.far][:2])

    def few_groups(self) -> str:
        """Name the groups of the test cases where they are too few to tell of others; empty elsewhere."""
        count = ENOUGH_GROUPS if self.trial.groups is None else len(np.unique(self.trial.groups))
        return f"{count} test {self.trial.together}{'s' * (count > 1)}" if count < ENOUGH_GROUPS else ""

    def _run_noise(self, gaps: pd.Series) -> Noise:
        """Give the noise of the mean gap over seeds and draws: the largest of what tells of it.

        Two seeds may agree by luck. So not only the pair's own seeds are asked, but also its draws of labels, and how
        much all contenders change places between seeds: the residual of a table of contenders by seeds.
        """
        by_seed = gaps.groupby("seed")
        if self.unit != SEEDS:  # many, and other contenders say nothing of how a pair differs from set to set
            return mean_noise(by_seed.mean())
        told, n_seeds = [], by_seed.ngroups
        if n_seeds > 1:
            told.append(mean_noise(by_seed.mean()))
            means = self.scores.groupby("seed").mean()
            rest = means.sub(means.mean(axis=1), axis=0) - means.mean() + means.to_numpy().mean()
            freedom = (n_seeds - 1.0) * (len(self.names) - 1)
            told.append((2 * float((rest.to_numpy() ** 2).sum()) / freedom / n_seeds, freedom))
        if len(gaps) > n_seeds:
            freedom = float(len(gaps) - n_seeds)
            told.append((float(((gaps - by_seed.transform("mean")) ** 2).sum()) / freedom / len(gaps), freedom))
        return max(told)

    def _cases(self, ahead: str, rival: str) -> NDArray[np.float64] | None:
        """How much more often each test case was right; None where that is unknown or is not what the metric counts."""
        means = []
        for name in (ahead, rival):
            seeds = [self.trial.right.get((name, self.protocol, s)) for s in self.scores.index.unique("seed")]
            if any(cases is None for cases in seeds):
                return None
            means.append(np.mean(np.asarray(seeds, dtype=np.float64), axis=0))
            if len(means[-1]) < 2 or not math.isclose(100 * means[-1].mean(), self.mean(name), abs_tol=1e-3):
                return None
        return np.asarray(means[0] - means[1])


@dataclass(frozen=True)
class Gap:
    """How far one contender is ahead of another, in the metric's own unit; NaN as interval where nothing tells."""

    ranking: Ranking
    ahead: str
    rival: str
    value: float
    low: float
    high: float
    basis: str  # what the interval is over, in words, or what is too little for one

    @property
    def known(self) -> bool:
        """Whether anything tells what noise is."""
        return not math.isnan(self.low)

    @property
    def settled(self) -> bool:
        """Whether the difference is more than noise."""
        return self.low > 0 or self.high < 0

    @property
    def far(self) -> bool:
        """Whether the rival is too far behind to be called as good, whatever noise leaves open."""
        return self.value > AS_GOOD * abs(self.ranking.mean(self.ahead))

    @property
    def digits(self) -> int:
        return 1 if self.ranking.metric in PERCENT else find_metric(self.ranking.metric).decimals

    @property
    def size(self) -> str:
        if self.ranking.metric in PERCENT:
            return "less than 0.1 points" if self.value < 0.05 else f"{self.value:.1f} points"
        return f"{self.value:.{self.digits}f}"

    @property
    def interval(self) -> str:
        ends = (round(end, self.digits) + 0.0 for end in (self.low, self.high))  # no minus zero
        return " to ".join(f"{end:.{self.digits}f}" for end in ends)

    def row(self) -> list[str]:
        """Both with their numbers, the difference, its interval, and whether that is more than noise."""
        who = [f"{name} {self.ranking.shown(name)}" for name in (self.ahead, self.rival)]
        told = "yes" if self.settled else "no" if self.known else "not known"
        interval = self.interval if self.known else f"only {self.basis}"
        return [*who, signed(self.value, self.digits), interval, told]


def training_gaps(rankings: Iterable[Ranking]) -> list[Gap]:
    """Compare the best trained with the best untrained by every protocol that has both."""
    sides = [(one, one.by_role(*LEARNED), one.by_role(*UNTRAINED)) for one in rankings]
    return [ranking.gap(learned[0], plain[0]) for ranking, learned, plain in sides if learned and plain]
