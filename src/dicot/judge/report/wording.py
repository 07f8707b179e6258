"""A verdict in sentences."""

from collections.abc import Sequence
from typing import NamedTuple

from dicot.judge.protocols import find_metric
from dicot.judge.report.frame import NOISE
from dicot.judge.report.ranking import LEARNED, Gap, Ranking, Trial, training_gaps
from dicot.judge.report.scores import equal_note, equal_protocols, failures
from dicot.judge.report.tables import Table, text_table
from dicot.judge.report.verdict import Reason, Verdict
from dicot.judge.result import PRETRAINED

LISTED = 4  # names in a sentence
GAP_COLUMNS = ["best trained", "best without training", "difference", "95 % interval", "beyond noise"]


class Wording(NamedTuple):
    """The first sentence of a report, and what else belongs to it."""

    sentence: str
    more: tuple[str, ...] = ()  # other protocols, failures, how the interval came about


def worded(verdict: Verdict, with_notes: bool = True) -> Wording:
    """Say whom to use and why; the notes are on other protocols and on failures."""
    ranking, gap = verdict.ranking, verdict.gap
    if ranking is None:
        return Wording("Only costs were measured, so nobody is better. Score something with --protocols linear.")
    notes = _notes(verdict, ranking) if with_notes else []
    if gap is None:
        return Wording(_without_rivals(verdict, ranking), tuple(notes))

    others = verdict.use[1:]
    why = _why(verdict, gap)
    if others:
        why += f" {' or '.join(others)} {'do' if len(others) > 1 else 'does'} as well."
    explanation = [explained(gap)] if gap.known else []
    return Wording(_first_sentence(verdict, gap), (why, *explanation, *notes))


def _without_rivals(verdict: Verdict, ranking: Ranking) -> str:
    if verdict.reason is Reason.NO_SCORES:
        return "No contender has all its scores, so there is nothing to decide."
    names, first = ranking.names, ranking.names[0]
    if verdict.reason is Reason.ALONE:
        score = f"Only {first} has a score: {ranking.measure} {ranking.shown(first)}."
        return f"{score} There is nothing to compare it with."
    score = f"All {len(names)} contenders have the same {ranking.measure}, {ranking.shown(first)}"
    return f"Use {verdict.use[0]}. {score}: this test part does not tell them apart."


def _first_sentence(verdict: Verdict, gap: Gap) -> str:
    """Whom to use, and the scores that say so."""
    use, roles = verdict.use, gap.ranking.trial.roles
    best = gap.rival if gap.rival in use[:1] else gap.ahead
    lead = f"Use {best}" if use else "No recommendation yet"
    is_trained = roles[best] in LEARNED
    is_open = bool(use) and not gap.settled
    if is_open and not is_trained and gap.ranking.by_role(*LEARNED):
        lead += ", which needs no training"

    decisive = next((one for one in verdict.gaps if one.low > 0), gap)
    if is_open and is_trained and gap.known and decisive.settled and decisive.ahead == best:
        return f"{lead}. {compared(decisive, best)} By {gap.ranking.measure} it is within noise."
    return f"{lead}. {compared(gap, best)}"


def _why(verdict: Verdict, gap: Gap) -> str:
    """What the verdict means for training."""
    ranking, gaps = gap.ranking, verdict.gaps
    learned = ranking.by_role(*LEARNED)
    is_pretrained = bool(learned) and ranking.trial.roles[learned[0]] == PRETRAINED
    training = "Pretraining" if is_pretrained else "Training with labels"
    n_won = sum(one.low > 0 for one in gaps)
    where = f"by {ranking.protocol}" if 0 < n_won < len(gaps) else "here"
    more = f"Test on more {ranking.trial.together}s" if ranking.few_groups() else f"Try more {ranking.unit}"
    over = verdict.over_control
    gain = "" if over is None else f"{over.size} over {over.rival}"
    return {
        Reason.NOTHING_TRAINED: "Nothing here was trained.",
        Reason.NO_CONTROL: "What training adds is not known without a control.",
        Reason.PAYS: f"{training} pays {where}.",
        Reason.PAYS_ELSEWHERE: f"{training} pays by other protocols, not {where}. It is worse by none.",
        Reason.OPEN: f"It is open whether {training.lower()} pays {where}. {more}.",
        Reason.NO_GAIN: f"{training} shows no gain {where}.",
        Reason.NOT_ENOUGH: f"{training} improves its encoder by {gain}, but that is not enough.",
        Reason.ADDS_NOTHING: f"{training} adds nothing {where}.",
    }[verdict.reason]


def _notes(verdict: Verdict, ranking: Ranking) -> list[str]:
    """By how many protocols training is better or worse, and who failed."""
    gaps, scores = verdict.gaps, ranking.trial.data
    notes = []
    if len(gaps) > 1:
        won = [gap.ranking.protocol for gap in gaps if gap.low > 0]
        lost = [gap.ranking.protocol for gap in gaps if gap.high < 0]
        n_open = len(gaps) - len(won) - len(lost)
        counts = f"better by {_listed(won)}, worse by {_listed(lost)}, within noise by {n_open or 'none'}"
        notes.append(f"Best trained against best untrained, by {len(gaps)} protocols: {counts}.")
    if not set(scores.contender[scores.error.notna()]) <= set(ranking.names):
        notes.append(failures(scores))
    return notes


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    shown = ", ".join(names[:LISTED])
    return f"{len(names)} ({shown}{', ...' if len(names) > LISTED else ''})"


def compared(gap: Gap, first: str) -> str:
    """Both numbers of a gap, those of `first` first, and whether the difference is noise."""
    ranking, roles = gap.ranking, gap.ranking.trial.roles
    other = gap.rival if first == gap.ahead else gap.ahead
    less = "" if find_metric(ranking.metric).higher_is_better else " (less is better)"
    is_without_training = roles[first] in LEARNED and roles[other] not in LEARNED
    untrained = " (untrained)" if is_without_training else ""
    numbers = f"{first} has {ranking.shown(first)} and {other}{untrained} has {ranking.shown(other)}"
    return f"By {ranking.measure}{less} {numbers}. {_noise(gap)}"


def _noise(gap: Gap) -> str:
    if not gap.known:
        return f"Noise is not known: there {'are' if gap.basis.endswith('s') else 'is'} only {gap.basis}."
    size = "larger than noise" if gap.settled else "within noise"
    return f"With one seed the difference is {size}." if gap.ranking.one_seed else f"The difference is {size}."


def explained(gap: Gap) -> str:
    """The difference and its interval, how that came about, and what is not in it."""
    ranking = gap.ranking
    pairs = len(ranking.names) - 1
    size = f"{gap.size} in favour of {gap.ahead}" if round(gap.value, NOISE) else "0"
    text = f"Difference by {ranking.measure}: {size}. 95 % interval: {gap.interval}, over {gap.basis}"
    text += f", corrected for {pairs} rivals (Bonferroni)." if pairs > 1 else "."
    if "binomial" in gap.basis:
        text += " It is not known which test cases were right, so the interval is too wide rather than too narrow."
    if ranking.one_seed:
        text += " With one seed the noise of training is not in it."
    return text


def verdict_table(trial: Trial) -> Table | None:
    """Show for every protocol the best trained beside the best untrained; None where one side is missing."""
    gaps = training_gaps(Ranking.of(trial, *measure) for measure in trial.measures().items())
    note = f"A difference above 0 is in favour of training. {equal_note(equal_protocols(trial.data))}"
    rows = [(gap.ranking.measure, gap.row()) for gap in gaps]
    return text_table("protocol, metric", rows, GAP_COLUMNS, note.rstrip()) if gaps else None
