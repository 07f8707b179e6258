"""What an evaluation comes to: who is ahead, by how much, whether that is more than noise, and what to use."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.judge.protocols import find_metric
from dicot.judge.protocols.base import CLASSIFICATION_METRICS, COSTS
from dicot.judge.report.frame import NOISE, direction, seeds_of
from dicot.judge.report.scores import equal_note, equal_protocols, failures
from dicot.judge.report.stats import Noise, gap_interval, mean_noise, paired_noise, shares_noise
from dicot.judge.report.tables import Table, signed, text_table
from dicot.judge.result import BASELINE, CONTROL, PRETRAINED, SUPERVISED

Right = Mapping[tuple[str, str, int], NDArray[np.float32]]  # by contender, protocol and seed, as an Evaluation has it

ACCURACY = CLASSIFICATION_METRICS[0].name  # a share of the test cases, in percent
PERCENT = tuple(metric.name for metric in CLASSIFICATION_METRICS)
LISTED = 4  # names in a sentence
SEEDS, SETS = "seeds", "data sets"  # what a mean may be over
ENOUGH_SETS = 5  # for an interval: differences on fewer say nothing of those on others
ENOUGH_GROUPS = 3  # of test cases, likewise: people, devices, recordings
AS_GOOD = 0.02  # of the best's score: whoever is farther behind is not as good, whatever noise leaves open
LEARNED, UNTRAINED = (PRETRAINED, SUPERVISED), (CONTROL, BASELINE)
GAP_COLUMNS = ["best trained", "best without training", "difference", "95 % interval", "beyond noise"]


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
        """Give the first metric that a table shows of every protocol, but no costs: nobody is better by these.

        Protocols with equal numbers count once.
        """
        names = [name for name in self.data.metric.unique() if find_metric(name).headline and name not in COSTS]
        repeated = [name for alike in equal_protocols(self.data) for name in alike[1:]]
        chosen = self.data[self.data.metric.isin(names) & ~self.data.protocol.isin(repeated)]
        first = chosen.drop_duplicates("protocol")
        return dict(zip(first.protocol, first.metric, strict=True))


@dataclass(frozen=True)
class Gap:
    """How far one contender is ahead of another, in the metric's own unit; NaN as interval where nothing tells."""

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
        """Rank whoever has a score for every seed and draw; at equal scores the quicker to fit comes first."""
        own = trial.data[(trial.data.protocol == protocol) & (trial.data.metric == metric)]
        table = own.pivot(index=["seed", "draw"], columns="contender", values="value").dropna(axis=1)
        return cls(trial, protocol, metric, table).ordered(own.groupby("contender").fit_seconds.mean().fillna(0.0))

    def ordered(self, seconds: Mapping[str, float] | None = None) -> "Ranking":
        """Put the best first; at equal scores the quicker to fit, where that is known."""
        merits = (direction(find_metric(self.metric)) * self.scores.mean()).round(NOISE)
        order = sorted(self.names, key=lambda name: (-merits[name], 0.0 if seconds is None else seconds[name]))
        return replace(self, scores=self.scores[order])

    @property
    def names(self) -> list[str]:
        """Everybody, best first."""
        return list(self.scores.columns)

    @property
    def measure(self) -> str:
        """What it is by."""
        return f"{self.protocol} {self.metric}"

    def by_role(self, roles: Collection[str]) -> list[str]:
        """Those with one of these roles, best first."""
        return [name for name in self.names if self.trial.roles[name] in roles]

    def mean(self, name: str) -> float:
        """The mean over seeds and draws."""
        return float(self.scores[name].mean())

    def shown(self, name: str) -> str:
        """The mean as it is printed."""
        return f"{self.mean(name):.{find_metric(self.metric).decimals}f}"

    def gap(self, ahead: str, rival: str) -> Gap:
        """Compare two: paired over seeds or draws and over test cases, as far as these are known."""
        gaps = direction(find_metric(self.metric)) * (self.scores[ahead] - self.scores[rival])
        value, n_seeds = float(gaps.mean()), gaps.index.unique("seed").size
        if (few := self.few_groups()) is not None:
            return Gap(ahead, rival, value, math.nan, math.nan, few)
        centre, noise, over = value, list[Noise](), []
        if (cases := self._cases(ahead, rival)) is not None:
            centre, variance, freedom = paired_noise(cases, self.trial.groups)
            centre *= 100
            noise.append((100**2 * variance, freedom))
            many = f" in {int(freedom) + 1} {self.trial.together}s" if self.trial.groups is not None else ""
            over.append(f"{len(cases):,} test cases{many}")
        elif self.metric == ACCURACY and self.trial.n_test > 1:
            variance, freedom = shares_noise([self.mean(name) / 100 for name in (ahead, rival)], self.trial.n_test)
            noise.append((100**2 * variance, freedom))
            over.append(f"the binomial error of {self.trial.n_test:,} test cases")
        if len(gaps) > 1 and (self.unit == SEEDS or n_seeds >= ENOUGH_SETS):
            noise.append(self._run_noise(gaps))
            draws = len(gaps) // n_seeds
            many = f"{n_seeds} {self.unit}" + (f" with {draws} draws of labels each" if draws > 1 else "")
            over.append(many if n_seeds > 1 else f"{draws} draws of labels")
        low, high = gap_interval(value, noise, centre, max(1, len(self.names) - 1))
        if self.metric in PERCENT:
            low, high = max(low, -100.0), min(high, 100.0)
        one = "one seed" if self.unit == SEEDS else f"{n_seeds} {self.unit}"
        return Gap(ahead, rival, value, low, high, " and ".join(over) or one)

    def training_gap(self) -> Gap | None:
        """The best trained against the best without training; None where one side is missing."""
        learned, plain = self.by_role(LEARNED), self.by_role(UNTRAINED)
        return self.gap(learned[0], plain[0]) if learned and plain else None

    def alike(self, first: str, others: Sequence[str]) -> tuple[str, ...]:
        """The first, and up to two others that are about as good: within noise, and not far behind."""
        gaps = [self.gap(first, name) for name in others if name != first]
        close = [gap.rival for gap in gaps if gap.known and not gap.settled and not self.far(gap)]
        return (first, *close[:2])

    def far(self, gap: Gap) -> bool:
        """Whether the rival is too far behind to be called as good, whatever noise leaves open."""
        return gap.value > AS_GOOD * abs(self.mean(gap.ahead))

    def few_groups(self) -> str | None:
        """Name the groups of the test cases where they are too few to tell of others."""
        count = ENOUGH_GROUPS if self.trial.groups is None else len(np.unique(self.trial.groups))
        return f"{count} test {self.trial.together}{'s' * (count > 1)}" if count < ENOUGH_GROUPS else None

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
class Verdict:
    """The first sentence of a report, what else belongs to it, and what follows."""

    sentence: str
    more: tuple[str, ...] = ()  # further sentences: other protocols, failures, how the interval came about
    use: tuple[str, ...] = ()  # contenders, the one to take first; empty where nobody can be recommended
    settled: bool = False  # the difference is more than noise


Gaps = Sequence[tuple[Ranking, Gap]]  # of the best trained and the best untrained, by protocol


def training_gaps(rankings: Iterable[Ranking]) -> Gaps:
    """Compare the best trained with the best untrained by every protocol that has both."""
    return [(one, gap) for one in rankings if (gap := one.training_gap()) is not None]


def verdict(trial: Trial) -> Verdict:
    """Decide by the first protocol that measures quality, and by the others where that one leaves it open."""
    rankings = [Ranking.of(trial, protocol, metric) for protocol, metric in trial.measures().items()]
    if not rankings:
        return Verdict("Only costs were measured, so nobody is better. Score something with --protocols linear.")
    gaps = training_gaps(rankings)
    broken = trial.data[trial.data.error.notna() & ~trial.data.contender.isin(rankings[0].names)]
    more = tuple(filter(None, (_by_protocols(gaps), failures(trial.data) if len(broken) else "")))
    if not rankings[0].names:
        return Verdict("No contender has all its scores, so there is nothing to decide.", more)
    found = decide(rankings[0], gaps)
    return replace(found, more=(*found.more, *more))


def _by_protocols(gaps: Gaps) -> str:
    """Say what all protocols together make of training; empty where there is one."""
    if len(gaps) < 2:
        return ""
    won = [ranking.protocol for ranking, gap in gaps if gap.low > 0]
    lost = [ranking.protocol for ranking, gap in gaps if gap.high < 0]
    rest = len(gaps) - len(won) - len(lost)
    told = f"better by {_listed(won)}, worse by {_listed(lost)}, within noise by {rest or 'none'}"
    return f"Best trained against best untrained, by {len(gaps)} protocols: {told}."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED])
    return f"{len(names)} ({shown}{', ...' if len(names) > LISTED else ''})" if names else "none"


def decide(ranking: Ranking, gaps: Gaps) -> Verdict:
    """Say whom to use by this ranking, beside whom, and whether the difference is more than noise.

    `gaps` are those of all protocols. Where this one leaves it open, the first that training wins decides.
    """
    names, first = ranking.names, ranking.names[0]
    learned, plain = ranking.by_role(LEARNED), ranking.by_role(UNTRAINED)
    if len(names) == 1:
        told = f"Only {first} has a score: {ranking.measure} {ranking.shown(first)}."
        return Verdict(f"{told} There is nothing to compare it with.", use=(first,))
    if ranking.scores.round(NOISE).nunique(axis=1).eq(1).all():
        cheapest = (plain or names)[0]
        told = f"All {len(names)} contenders have the same {ranking.measure}, {ranking.shown(first)}"
        return Verdict(f"Use {cheapest}. {told}: this test part does not tell them apart.", use=(cheapest,))
    gap = ranking.gap(first, ((plain if first in learned else learned) or names[1:])[0])
    why, use = _advice(ranking, gap, gaps)
    best = gap.rival if gap.rival in use[:1] else first
    lead = f"Use {best}" if use else "No recommendation yet"
    if use and learned and best in plain and not gap.settled:
        lead += ", which needs no training"
    one_seed = ranking.unit == SEEDS and len(seeds_of(ranking.trial.data)) == 1
    sentence = f"{lead}. {_compared(ranking, gap, best)}. {_noise(gap, one_seed)}"
    won = [(other, theirs) for other, theirs in gaps if theirs.low > 0][:1]
    if use and best in learned and gap.known and not gap.settled:
        for other, theirs in won:
            if theirs.ahead == best:
                told = f"{_compared(other, theirs, best)}. {_noise(theirs, one_seed)}"
                sentence = f"{lead}. {told} By {ranking.measure} it is within noise."
    as_well = f" {' or '.join(use[1:])} {'does' if len(use) == 2 else 'do'} as well." if use[1:] else ""
    more = (why + as_well, *([_difference(ranking, gap, one_seed)] if gap.known else []))
    return Verdict(sentence, more, use, gap.settled)


def _advice(ranking: Ranking, gap: Gap, gaps: Gaps) -> tuple[str, tuple[str, ...]]:
    """Say what the gap means for training, and whom to use: the untrained wherever training shows no gain."""
    learned, plain = ranking.by_role(LEARNED), ranking.by_role(UNTRAINED)
    won, lost = [g for _, g in gaps if g.low > 0], [g for _, g in gaps if g.high < 0]
    where = f"by {ranking.protocol}" if 0 < len(won) < len(gaps) else "here"
    first = gap.ahead
    if not learned:
        return "Nothing here was trained.", ranking.alike(first, plain)
    if not plain:
        return "What training adds is not known without a control.", ranking.alike(first, learned)
    training = "Pretraining" if ranking.trial.roles[learned[0]] == PRETRAINED else "Training with labels"
    if first in learned and gap.settled:
        return f"{training} pays {where}.", (first,)
    if not gap.settled and won and not lost:
        return f"{training} pays by other protocols, not {where}. It is worse by none.", (learned[0],)
    if first in learned and ranking.far(gap):
        what = f"Test on more {ranking.trial.together}s" if ranking.few_groups() else f"Try more {ranking.unit}"
        return f"It is open whether {training.lower()} pays {where}. {what}.", ()
    use = ranking.alike(plain[0], plain)
    if not gap.settled:
        return f"{training} shows no gain {where}.", use
    for control in ranking.by_role((CONTROL,))[:1]:
        over = ranking.gap(learned[0], control)
        if over.low > 0:
            gain = _size(ranking.metric, over.value)
            return f"{training} improves its encoder by {gain} over {control}, but that is not enough.", use
    return f"{training} adds nothing {where}.", use


def _compared(ranking: Ranking, gap: Gap, first: str) -> str:
    """Give both numbers, those of `first` first."""
    other, roles = gap.rival if first == gap.ahead else gap.ahead, ranking.trial.roles
    less = "" if find_metric(ranking.metric).higher_is_better else " (less is better)"
    untrained = " (untrained)" if roles[first] in LEARNED and roles[other] not in LEARNED else ""
    numbers = f"{first} has {ranking.shown(first)} and {other}{untrained} has {ranking.shown(other)}"
    return f"By {ranking.measure}{less} {numbers}"


def _noise(gap: Gap, one_seed: bool) -> str:
    """Say whether the difference is noise."""
    if not gap.known:
        return f"Noise is not known: there {'are' if gap.basis.endswith('s') else 'is'} only {gap.basis}."
    text = "larger than noise" if gap.settled else "within noise"
    return f"With one seed the difference is {text}." if one_seed else f"The difference is {text}."


def _difference(ranking: Ranking, gap: Gap, one_seed: bool) -> str:
    """Give the difference and its interval, how that came about, and what is not in it."""
    pairs = len(ranking.names) - 1
    size = f"{_size(ranking.metric, gap.value)} in favour of {gap.ahead}" if round(gap.value, NOISE) else "0"
    text = f"Difference by {ranking.measure}: {size}. "
    text += f"95 % interval: {_interval(ranking.metric, gap)}, over {gap.basis}"
    text += f", corrected for {pairs} rivals (Bonferroni)." if pairs > 1 else "."
    if "binomial" in gap.basis:
        text += " It is not known which test cases were right, so the interval is too wide rather than too narrow."
    return text + (" With one seed the noise of training is not in it." if one_seed else "")


def _digits(metric: str) -> int:
    return 1 if metric in PERCENT else find_metric(metric).decimals


def _size(metric: str, value: float) -> str:
    if metric not in PERCENT:
        return f"{value:.{_digits(metric)}f}"
    return "less than 0.1 points" if value < 0.05 else f"{value:.1f} points"


def _interval(metric: str, gap: Gap) -> str:
    digits = _digits(metric)
    return " to ".join(f"{round(value, digits) + 0.0:.{digits}f}" for value in (gap.low, gap.high))  # no minus zero


def gap_row(ranking: Ranking, gap: Gap) -> list[str]:
    """Both with their numbers, the difference, its interval, and whether that is more than noise."""
    who = [f"{name} {ranking.shown(name)}" for name in (gap.ahead, gap.rival)]
    told = "yes" if gap.settled else "no" if gap.known else "not known"
    interval = _interval(ranking.metric, gap) if gap.known else f"only {gap.basis}"
    return [*who, signed(gap.value, _digits(ranking.metric)), interval, told]


def verdict_table(trial: Trial) -> Table | None:
    """Show for every protocol the best trained beside the best untrained; None where one side is missing."""
    gaps = training_gaps(Ranking.of(trial, *measure) for measure in trial.measures().items())
    if not gaps:
        return None
    rows = ((ranking.measure, gap_row(ranking, gap)) for ranking, gap in gaps)
    note = f"A difference above 0 is in favour of training. {equal_note(equal_protocols(trial.data))}"
    return text_table("protocol, metric", rows, GAP_COLUMNS, note.rstrip())
