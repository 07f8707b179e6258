"""What of recordings lies in no window: counted by recording and by row, and refused where it is too much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from dicot.core.errors import InputError, listed
from dicot.data.allowance import Allowance
from dicot.data.cutting import Cut, CutPlan
from dicot.data.timestamps import BRIDGE, BRIDGED, is_worth_bridging

MOST = 0.2  # share of the recordings, or of the rows, that may lie in no window without anybody having allowed it
SHORT, GAPS, OTHER_RATE = "short", "gaps", "rate"  # why a recording has no window


@final
@dataclass(frozen=True)
class Coverage:
    """How much of some recordings lies in windows.

    A row counts as left out where its recording, or the stretch between gaps that it is in, is shorter than a window or
    at another rate. Rows behind the last window do not count, nor do those that a stride longer than a window skips.
    """

    longest: Mapping[str, int] = field(default_factory=dict)  # by recording: time steps of its longest stretch
    reasons: Mapping[str, str] = field(default_factory=dict)  # by recording without a window: why
    rows: int = 0
    rows_left_out: int = 0
    rows_at_other_rate: int = 0  # among those left out
    rows_bridgeable: int = 0  # among those left out: a gap that bridges one or two lost rows would keep them

    @classmethod
    def of(cls, plan: CutPlan) -> "Coverage":
        """Return what the windows of some recordings cover."""
        left, rows, with_window = plan.left, plan.rows, plan.with_window
        longest = dict.fromkeys(rows, 0) | plan.lengths
        reasons = {}
        rows_left_out = left.between + left.other
        for name, n_rows in rows.items():
            if name in with_window:
                continue
            if longest[name] == n_rows:
                reasons[name] = SHORT
                rows_left_out += n_rows
            else:
                reasons[name] = GAPS if longest[name] else OTHER_RATE
        return cls(longest, reasons, sum(rows.values()), rows_left_out, left.other, left.bridgeable)

    @classmethod
    def of_all(cls, parts: Iterable["Coverage"]) -> "Coverage":
        """Join the coverage of several files."""
        parts = list(parts)
        longest = {name: n for part in parts for name, n in part.longest.items()}
        reasons = {name: reason for part in parts for name, reason in part.reasons.items()}
        return cls(
            longest,
            reasons,
            rows=sum(part.rows for part in parts),
            rows_left_out=sum(part.rows_left_out for part in parts),
            rows_at_other_rate=sum(part.rows_at_other_rate for part in parts),
            rows_bridgeable=sum(part.rows_bridgeable for part in parts),
        )


def refuse_partial(
    coverage: Coverage, cut: Cut, allowance: Allowance, *, recordings_before: int = 0, rows_before: int = 0
) -> None:
    """Refuse windows that leave out more than a fifth of the recordings, or of the rows, unless that is allowed.

    What was cut before, and is in windows, counts as well: a short recording among many is no error when it comes last.
    """
    n_recordings = len(coverage.longest) + recordings_before
    n_rows = coverage.rows + rows_before
    too_many_recordings = len(coverage.reasons) > MOST * n_recordings
    too_many_rows = coverage.rows_left_out > MOST * n_rows
    if allowance.partial:
        allowance.recordings += [name for name in coverage.reasons if name not in allowance.recordings]
        allowance.rows += coverage.rows_left_out if too_many_rows else 0
        return
    if not (too_many_recordings or too_many_rows):
        return
    if too_many_recordings:
        what = f"{len(coverage.reasons)} of {n_recordings} recordings have no window"
    else:
        share = f"{100 * coverage.rows_left_out / n_rows:.0f} % of the rows"
        what = f"{share} ({coverage.rows_left_out:,} of {n_rows:,}) lie in no window"
    go_on = "To go on with the others: --allow-partial (in Python allowance=Allowance(partial=True))."
    raise InputError(f"{what}, more than a fifth. {' '.join(_explained(coverage, cut))} {go_on}")


def _explained(coverage: Coverage, cut: Cut) -> list[str]:
    """Say what is left out and why, and what would keep more, in the words of the command line."""
    window = f"{cut.length} time steps" + ("" if cut.rate is None else f" at {cut.rate:g} per second")
    texts = {
        SHORT: f"Shorter than a window of {window}",
        GAPS: f"Without a stretch between gaps that is as long as a window of {window}",
        OTHER_RATE: "At another rate than the windows",
    }
    sentences = []
    for reason, text in texts.items():
        names = [name for name, why in coverage.reasons.items() if why == reason]
        if names:
            sentences.append(f"{text}: {listed(names)}.")

    rows_in_short_stretches = coverage.rows_left_out - coverage.rows_at_other_rate
    if not coverage.reasons and rows_in_short_stretches:
        sentences.append(f"{rows_in_short_stretches:,} lie between gaps that are less than a window of {window} apart.")
    if not coverage.reasons and coverage.rows_at_other_rate:
        sentences.append(f"{coverage.rows_at_other_rate:,} are at another rate than the windows.")

    lengths = sorted(coverage.longest.values())
    keeps_most = lengths[int(MOST * len(lengths))] if lengths else 0
    if 2 <= keeps_most < cut.length:
        sentences.append(f"--window {keeps_most} keeps four fifths of the recordings.")
    if GAPS in coverage.reasons.values() or (not coverage.reasons and rows_in_short_stretches):
        sentences.append(_gap_remedy(coverage, cut))
    if coverage.rows_at_other_rate and not cut.reading.even:
        sentences.append("--set resample=true keeps other rates.")
    return sentences


def _gap_remedy(coverage: Coverage, cut: Cut) -> str:
    """Say which gap keeps more rows."""
    if is_worth_bridging(coverage.rows_bridgeable, coverage.rows_left_out):
        kept = f"keeps {coverage.rows_bridgeable:,} of them"
        return f"{BRIDGE} bridges up to {int(BRIDGED) - 1} lost rows in a row and {kept}."
    return f"--set gap={2 * cut.reading.gap:g} bridges longer gaps."
