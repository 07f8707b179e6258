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
from dicot.judge.report.stats import gap_interval, mean_noise, paired_noise, shares_noise
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
LEARNED = (PRETRAINED, SUPERVISED)
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
        return dict(zip(*(chosen.drop_duplicates("protocol")[name] for name in ("protocol", "metric")), strict=True))


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
        sign = direction(find_metric(metric))
        seconds = own.groupby("contender").fit_seconds.mean().fillna(0.0).to_dict()
        merits = (sign * table.mean()).round(NOISE)
        order = sorted(table.columns, key=lambda name: (-merits[name], seconds[name]))
        return cls(trial, protocol, metric, table[order])

    @property
    def names(self) -> list[str]:
        """Everybody, best first."""
        return list(self.scores.columns)

    def by_role(self, roles: Collection[str]) -> list[str]:
        """Those with one of these roles, best first."""
        return [name for name in self.names if self.trial.roles[name] in roles]

    def mean(self, name: str) -> float:
        """The mean over seeds and draws."""
        return float(self.scores[name].mean())

    def gap(self, ahead: str, rival: str) -> Gap:
        """Compare two: paired over seeds or draws and over test cases, as far as these are known."""
        metric = find_metric(self.metric)
        gaps = direction(metric) * (self.scores[ahead] - self.scores[rival])
        value = float(gaps.mean())
        by_seed = gaps.groupby("seed").mean()
        centre, noise, over = value, [], []
        if (few := self.few_groups()) is not None:
            return Gap(ahead, rival, value, math.nan, math.nan, few)
        if (cases := self._cases(ahead, rival)) is not None:
            centre, variance, freedom = paired_noise(cases, self.trial.groups)
            centre, variance = 100 * centre, 100**2 * variance
            noise.append((variance, freedom))
            many = f" in {int(freedom) + 1} {self.trial.together}s" if self.trial.groups is not None else ""
            over.append(f"{len(cases):,} test cases{many}")
        elif self.metric == ACCURACY and self.trial.n_test > 1:
            variance, freedom = shares_noise([self.mean(name) / 100 for name in (ahead, rival)], self.trial.n_test)
            noise.append((100**2 * variance, freedom))
            over.append(f"the binomial error of {self.trial.n_test:,} test cases")
        if len(gaps) > 1 and (self.unit == SEEDS or len(by_seed) >= ENOUGH_SETS):
            noise.append(self._run_noise(gaps))
            draws = len(gaps) // len(by_seed)
            many = f"{len(by_seed)} {self.unit}" + (f" with {draws} draws of labels each" if draws > 1 else "")
            over.append(many if len(by_seed) > 1 else f"{draws} draws of labels")
        low, high = gap_interval(value, noise, centre, max(1, len(self.names) - 1))
        if self.metric in PERCENT:
            low, high = max(low, -100.0), min(high, 100.0)
        one = "one seed" if self.unit == SEEDS else f"{len(by_seed)} {self.unit}"
        return Gap(ahead, rival, value, low, high, " and ".join(over) or one)

    def close(self, ahead: str, rival: str) -> bool:
        """Whether the rival is about as good: noise does not tell it apart, and it is not far behind."""
        gap = self.gap(ahead, rival)
        return gap.known and not gap.settled and gap.value <= AS_GOOD * abs(self.mean(ahead))

    def training_gap(self) -> Gap | None:
        """The best trained against the best without training; None where one side is missing."""
        learned, plain = self.by_role(LEARNED), self.by_role((CONTROL, BASELINE))
        return self.gap(learned[0], plain[0]) if learned and plain else None

    def few_groups(self) -> str | None:
        """Name the groups of the test cases where they are too few to tell of others."""
        count = ENOUGH_GROUPS if self.trial.groups is None else len(np.unique(self.trial.groups))
        return f"{count} test {self.trial.together}{'s' * (count > 1)}" if count < ENOUGH_GROUPS else None

    def _run_noise(self, gaps: pd.Series) -> tuple[float, float]:
        """Give variance and degrees of freedom of the mean gap over seeds and draws: the largest of what tells of it.

        Two seeds may agree by luck. So not only the pair's own seeds are asked, but also its draws of labels, and how
        much all contenders change places between seeds: the residual of a table of contenders by seeds.
        """
        if self.unit != SEEDS:  # many, and other contenders say nothing of how a pair differs from set to set
            return mean_noise(gaps.groupby("seed").mean())
        told = []
        by_seed = gaps.groupby("seed")
        n_seeds, n_names = by_seed.ngroups, len(self.names)
        if n_seeds > 1:
            told.append(mean_noise(by_seed.mean()))
            means = self.scores.groupby("seed").mean()
            rest = means.sub(means.mean(axis=1), axis=0) - means.mean() + means.to_numpy().mean()
            freedom = (n_seeds - 1.0) * (n_names - 1)
            told.append((2 * float((rest.to_numpy() ** 2).sum()) / freedom / n_seeds, freedom))
        if len(gaps) > n_seeds:
            freedom = float(len(gaps) - n_seeds)
            told.append((float(((gaps - by_seed.transform("mean")) ** 2).sum()) / freedom / len(gaps), freedom))
        return max(told)

    def _cases(self, ahead: str, rival: str) -> NDArray[np.float64] | None:
        """How much more often each test case was right; None where that is unknown or is not what the metric counts."""
        seeds = seeds_of(self.scores.index.to_frame())
        pairs = [[self.trial.right.get((name, self.protocol, seed)) for seed in seeds] for name in (ahead, rival)]
        if any(cases is None for both in pairs for cases in both):
            return None
        means = [np.mean(np.asarray(both, dtype=np.float64), axis=0) for both in pairs]
        shown = [self.mean(ahead), self.mean(rival)]
        counts = all(math.isclose(100 * m.mean(), s, abs_tol=1e-3) for m, s in zip(means, shown, strict=True))
        return means[0] - means[1] if counts and len(means[0]) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """The first sentence of a report, what else belongs to it, and what follows."""

    sentence: str
    more: tuple[str, ...] = ()  # further sentences: other protocols, failures, how the interval came about
    use: tuple[str, ...] = ()  # contenders, the one to take first; empty where nobody can be recommended
    ranked: tuple[str, ...] = ()  # all that have a score, best first
    settled: bool = False  # the difference is more than noise
    level: bool = False  # all are equal: the test part does not tell anybody apart


def verdict(trial: Trial) -> Verdict:
    """Decide by the first protocol that measures quality, and by the others where that one leaves it open."""
    measures = trial.measures()
    if not measures:
        return Verdict("Only costs were measured, so nobody is better. Score something with --protocols linear.")
    rankings = [Ranking.of(trial, protocol, metric) for protocol, metric in measures.items()]
    ranking, elsewhere = rankings[0], Elsewhere.of(rankings)
    broken = trial.data[trial.data.error.notna() & ~trial.data.contender.isin(ranking.names)]
    more = tuple(filter(None, (elsewhere.text(), failures(trial.data) if len(broken) else "")))
    if not ranking.names:
        return Verdict("No contender has all its scores, so there is nothing to decide.", more)
    found = decide(ranking, elsewhere)
    return replace(found, more=(*found.more, *more), ranked=tuple(ranking.names))


def decide(ranking: Ranking, elsewhere: "Elsewhere") -> Verdict:
    """Say whom to use by this ranking, beside whom, and whether the difference is more than noise."""
    names, measure = ranking.names, f"{ranking.protocol} {ranking.metric}"
    first = names[0]
    if len(names) == 1:
        told = f"Only {first} has a score: {measure} {_number(ranking, first)}."
        return Verdict(f"{told} There is nothing to compare it with.", use=(first,))
    learned, plain = ranking.by_role(LEARNED), ranking.by_role((CONTROL, BASELINE))
    if ranking.scores.round(NOISE).nunique(axis=1).eq(1).all():
        cheapest = (plain or names)[0]
        told = f"All {len(names)} contenders have the same {measure}, {_number(ranking, first)}"
        return Verdict(f"Use {cheapest}. {told}: this test part does not tell them apart.", use=(cheapest,), level=True)
    gap = ranking.gap(first, ((plain if first in learned else learned) or names[1:])[0])
    why, use = _advice(ranking, gap, learned, plain, elsewhere)
    whom = gap.rival if gap.rival in use[:1] else first
    lead = f"Use {whom}" if use else "No recommendation yet"
    if use and learned and whom in plain and not gap.settled:
        lead += ", which needs no training"
    seeds = seeds_of(ranking.trial.data)
    one_seed = ranking.unit == SEEDS and len(seeds) == 1
    sentence = f"{lead}. {_compared(ranking, gap, whom)}. {_noise(gap, one_seed)}"
    decides = elsewhere.first
    if whom in learned and use and gap.known and not gap.settled and decides and decides[1].ahead == whom:
        sentence = (
            f"{lead}. {_compared(*decides, whom)}. {_noise(decides[1], one_seed)} By {measure} it is within noise."
        )
    as_well = f" {' or '.join(use[1:])} {'does' if len(use) == 2 else 'do'} as well." if use[1:] else ""
    more = (why + as_well, *([_difference(ranking, gap, one_seed)] if gap.known else []))
    return Verdict(sentence, more, use, settled=gap.settled)


def _compared(ranking: Ranking, gap: Gap, whom: str) -> str:
    """Give both numbers, those of `whom` first."""
    other = gap.rival if whom == gap.ahead else gap.ahead
    less = "" if find_metric(ranking.metric).higher_is_better else " (less is better)"
    roles = ranking.trial.roles
    untrained = " (untrained)" if roles[whom] in LEARNED and roles[other] not in LEARNED else ""
    numbers = f"{whom} has {_number(ranking, whom)} and {other}{untrained} has {_number(ranking, other)}"
    return f"By {ranking.protocol} {ranking.metric}{less} {numbers}"


def _advice(
    ranking: Ranking, gap: Gap, learned: Sequence[str], plain: Sequence[str], elsewhere: "Elsewhere"
) -> tuple[str, tuple[str, ...]]:
    """Say what the gap means for training, and whom to take: the untrained wherever training shows no gain."""
    where = f"by {ranking.protocol}" if 0 < len(elsewhere.ahead) < elsewhere.total else "here"
    first = gap.ahead
    if not learned:
        return "Nothing here was trained.", _alike(ranking, first, plain)
    if not plain:
        return "What training adds is not known without a control.", _alike(ranking, first, learned)
    training = "Pretraining" if ranking.trial.roles[learned[0]] == PRETRAINED else "Training with labels"
    if first in learned and gap.settled:
        return f"{training} pays {where}.", (first,)
    if not gap.settled and elsewhere.ahead and not elsewhere.behind:
        return f"{training} pays by other protocols, not {where}. It is worse by none.", (learned[0],)
    use = _alike(ranking, plain[0], plain)
    if first in learned and gap.value > AS_GOOD * abs(ranking.mean(first)):
        what = f"Test on more {ranking.trial.together}s" if ranking.few_groups() else f"Try more {ranking.unit}"
        return f"It is open whether {training.lower()} pays {where}. {what}.", ()
    if not gap.settled:
        return f"{training} shows no gain {where}.", use
    controls = [name for name in plain if ranking.trial.roles[name] == CONTROL]
    over = ranking.gap(learned[0], controls[0]) if controls else None
    if over is not None and over.low > 0:
        gain = _size(ranking.metric, over.value)
        return f"{training} improves its encoder by {gain} over {controls[0]}, but that is not enough.", use
    return f"{training} adds nothing {where}.", use


def _alike(ranking: Ranking, first: str, others: Sequence[str]) -> tuple[str, ...]:
    """The first, and up to two others that are about as good."""
    return (first, *[name for name in others if name != first and ranking.close(first, name)][:2])


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
    text = f"Difference by {ranking.protocol} {ranking.metric}: {size}. "
    text += f"95 % interval: {_interval(ranking.metric, gap)}, over {gap.basis}"
    text += f", corrected for {pairs} rivals (Bonferroni)." if pairs > 1 else "."
    if "binomial" in gap.basis:
        text += " It is not known which test cases were right, so the interval is too wide rather than too narrow."
    return text + (" With one seed the noise of training is not in it." if one_seed else "")


def _number(ranking: Ranking, name: str) -> str:
    return f"{ranking.mean(name):.{find_metric(ranking.metric).decimals}f}"


def _digits(metric: str) -> int:
    return 1 if metric in PERCENT else find_metric(metric).decimals


def _size(metric: str, value: float) -> str:
    number = f"{value:.{_digits(metric)}f}"
    if metric not in PERCENT:
        return number
    return "less than 0.1 points" if value < 0.05 else f"{number} points"


def _interval(metric: str, gap: Gap) -> str:
    digits = _digits(metric)
    return " to ".join(f"{round(value, digits) + 0.0:.{digits}f}" for value in (gap.low, gap.high))  # no minus zero


@dataclass(frozen=True)
class Elsewhere:
    """The protocols by which the best trained is ahead of the best untrained, and by which it is behind."""

    gaps: tuple[tuple[Ranking, Gap], ...]

    @classmethod
    def of(cls, rankings: Iterable[Ranking]) -> "Elsewhere":
        """Compare both by every protocol that has both."""
        return cls(tuple((one, gap) for one in rankings if (gap := one.training_gap()) is not None))

    @property
    def total(self) -> int:
        """How many protocols compare them."""
        return len(self.gaps)

    @property
    def ahead(self) -> list[str]:
        """The protocols by which training wins; what is within noise is neither here nor behind."""
        return [ranking.protocol for ranking, gap in self.gaps if gap.low > 0]

    @property
    def behind(self) -> list[str]:
        """The protocols by which it loses."""
        return [ranking.protocol for ranking, gap in self.gaps if gap.high < 0]

    @property
    def first(self) -> tuple[Ranking, Gap] | None:
        """The first comparison that training wins."""
        return next(((ranking, gap) for ranking, gap in self.gaps if gap.low > 0), None)

    def text(self) -> str:
        """Say what all protocols together make of training; empty where there is one."""
        if self.total < 2:
            return ""
        rest = self.total - len(self.ahead) - len(self.behind)
        told = f"better by {_listed(self.ahead)}, worse by {_listed(self.behind)}, within noise by {rest or 'none'}"
        return f"Best trained against best untrained, by {self.total} protocols: {told}."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED])
    return f"{len(names)} ({shown}{', ...' if len(names) > LISTED else ''})" if names else "none"


def gap_row(ranking: Ranking, gap: Gap) -> list[str]:
    """Both with their numbers, the difference, its interval, and whether that is more than noise."""
    who = [f"{name} {_number(ranking, name)}" for name in (gap.ahead, gap.rival)]
    told = "yes" if gap.settled else "no" if gap.known else "not known"
    interval = _interval(ranking.metric, gap) if gap.known else f"only {gap.basis}"
    return [*who, signed(gap.value, _digits(ranking.metric)), interval, told]


def verdict_table(trial: Trial) -> Table | None:
    """Show for every protocol the best trained beside the best untrained; None where one side is missing."""
    gaps = Elsewhere.of(Ranking.of(trial, *measure) for measure in trial.measures().items()).gaps
    if not gaps:
        return None
    rows = ((f"{ranking.protocol} {ranking.metric}", gap_row(ranking, gap)) for ranking, gap in gaps)
    note = f"A difference above 0 is in favour of training. {equal_note(equal_protocols(trial.data))}"
    return text_table("protocol, metric", rows, GAP_COLUMNS, note.rstrip())
