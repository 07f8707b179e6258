"""What an evaluation comes to: what to use, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from dicot.judge.report.frame import NOISE
from dicot.judge.report.ranking import LEARNED, UNTRAINED, Gap, Ranking, Trial, training_gaps
from dicot.judge.result import CONTROL


class Reason(Enum):
    """Why a verdict is what it is."""

    ONLY_COSTS = auto()  # nobody is better by what was measured
    NO_SCORES = auto()  # nobody has all scores
    ALONE = auto()  # one contender has a score
    ALL_EQUAL = auto()  # the test part does not tell them apart
    NOTHING_TRAINED = auto()
    NO_CONTROL = auto()  # nothing untrained to compare with
    PAYS = auto()  # training is ahead by more than noise
    PAYS_ELSEWHERE = auto()  # by other protocols, and it is worse by none
    OPEN = auto()  # training is far ahead, and that may be noise
    NO_GAIN = auto()  # within noise
    NOT_ENOUGH = auto()  # training improves its encoder, and others are better still
    ADDS_NOTHING = auto()


@final
@dataclass(frozen=True)
class Verdict:
    """Whom to use, and what that rests on; `worded` in wording.py says it in sentences."""

    reason: Reason
    ranking: Ranking | None = None  # by the protocol that decides
    gap: Gap | None = None  # of the best to the best on the other side, trained or untrained
    gaps: tuple[Gap, ...] = ()  # of the best trained to the best untrained by every protocol
    use: tuple[str, ...] = ()  # contenders, the one to take first; empty where nobody can be recommended
    over_control: Gap | None = None  # what training adds to its own encoder, where that is not enough

    @property
    def settled(self) -> bool:
        """Whether the difference is more than noise."""
        return self.gap is not None and self.gap.settled


def verdict(trial: Trial) -> Verdict:
    """Decide by the first protocol that measures quality, and by the others where that one leaves it open."""
    rankings = [Ranking.of(trial, protocol, metric) for protocol, metric in trial.measures().items()]
    if not rankings:
        return Verdict(Reason.ONLY_COSTS)
    return decide(rankings[0], training_gaps(rankings))


def decide(ranking: Ranking, gaps: Sequence[Gap]) -> Verdict:
    """Say whom to use by this ranking, and whether the difference is more than noise.

    `gaps` are those of all protocols. Where this one leaves it open, the first that training wins decides.
    """
    names, all_gaps = ranking.names, tuple(gaps)
    if not names:
        return Verdict(Reason.NO_SCORES, ranking, gaps=all_gaps)
    first = names[0]
    learned, plain = ranking.by_role(*LEARNED), ranking.by_role(*UNTRAINED)
    if len(names) == 1:
        return Verdict(Reason.ALONE, ranking, gaps=all_gaps, use=(first,))
    if ranking.scores.round(NOISE).nunique(axis=1).eq(1).all():
        return Verdict(Reason.ALL_EQUAL, ranking, gaps=all_gaps, use=((plain or names)[0],))

    other_side = plain if first in learned else learned
    gap = ranking.gap(first, (other_side or names[1:])[0])
    over_control = None
    reason = _reason(gap, learned, plain, gaps)
    if reason is Reason.ADDS_NOTHING:
        over_control = _gain_over_control(ranking, learned[0])
        if over_control is not None:
            reason = Reason.NOT_ENOUGH
    use = _use(reason, gap, learned, plain)
    return Verdict(reason, ranking, gap, all_gaps, use, over_control)


def _reason(gap: Gap, learned: Sequence[str], plain: Sequence[str], gaps: Sequence[Gap]) -> Reason:
    """What the gap means for training."""
    if not learned:
        return Reason.NOTHING_TRAINED
    if not plain:
        return Reason.NO_CONTROL
    is_trained = gap.ahead in learned
    if is_trained and gap.settled:
        return Reason.PAYS
    has_won = any(one.low > 0 for one in gaps)
    has_lost = any(one.high < 0 for one in gaps)
    if not gap.settled and has_won and not has_lost:
        return Reason.PAYS_ELSEWHERE
    if is_trained and gap.far:
        return Reason.OPEN
    return Reason.ADDS_NOTHING if gap.settled else Reason.NO_GAIN


def _gain_over_control(ranking: Ranking, learned: str) -> Gap | None:
    """What training adds to the best control, where that is more than noise."""
    for control in ranking.by_role(CONTROL)[:1]:
        gap = ranking.gap(learned, control)
        if gap.low > 0:
            return gap
    return None


def _use(reason: Reason, gap: Gap, learned: Sequence[str], plain: Sequence[str]) -> tuple[str, ...]:
    """Whom to use: the untrained wherever training shows no gain."""
    ranking, first = gap.ranking, gap.ahead
    if reason is Reason.NOTHING_TRAINED:
        return ranking.alike(first, plain)
    if reason is Reason.NO_CONTROL:
        return ranking.alike(first, learned)
    if reason is Reason.PAYS:
        return (first,)
    if reason is Reason.PAYS_ELSEWHERE:
        return (learned[0],)
    if reason is Reason.OPEN:
        return ()
    return ranking.alike(plain[0], plain)
