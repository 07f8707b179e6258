"""How long blocks of time must be to count as independent, and what to do where there are too few of them."""

import math

from dicot.store.vectors import Vectors
from dicot.use.blocks import ENOUGH, LONGER, block_text, seconds_alike, suggested_block
from dicot.use.events import covered

Pair = tuple[Vectors, Vectors]  # of the reference, and what is new


def short_blocks_warning(vectors: Pair, seconds: float | None, alpha: float) -> str:
    """Say that blocks of so many seconds are so short that they are no independent evidence; empty where they are not.

    `seconds` is None where windows are not exchanged in blocks of time.
    """
    if seconds is None:
        return ""
    alike = _seconds_alike(vectors)
    least = LONGER * alike
    if seconds >= least:
        return ""
    should = "Windows stay alike over the whole recordings, so blocks of no length are independent."
    if math.isfinite(least):
        should = (
            f"Blocks should last {block_text(least)} or more, twenty times as long as windows stay alike "
            f"({block_text(alike)})."
        )
    return f"{should} With shorter ones there may be more false alarms than --alarm {alpha:g} says."


def remedy_for_few_units(vectors: Pair, seconds: float | None, alpha: float) -> str:
    """Say what to do where there are too few units: the option, ready to paste, or more recordings.

    `seconds` is how long the blocks were that were too few; None where the units were no blocks of time.
    """
    if not all(map(_has_times, vectors)):
        return "Record longer, or compare more recordings."
    sides = [side.places()[:2] for side in vectors]
    alike = _seconds_alike(vectors)
    independent = suggested_block(sides, LONGER * alike)
    if independent is not None and seconds is None:
        caution = "Any difference between recordings then counts as a change."
        return f"Compare more recordings, or blocks of time: --unit {independent}. {caution}"
    if independent is not None:
        return f"Record longer, compare more recordings, or take shorter blocks: --unit {independent}."

    more = "Record longer, or compare more recordings."
    shorter = suggested_block(sides, 0)
    if shorter is not None:
        more = (
            "Record longer, compare more recordings, or take shorter blocks, which alarm more often than --alarm "
            f"{alpha:g} says: --unit {shorter}."
        )
    return f"{_why_no_blocks(vectors, alike)} {more}"


def _has_times(vectors: Vectors) -> bool:
    """Tell whether windows know when they are, in seconds."""
    return vectors.placed and (vectors.source is None or vectors.source.rate is not None)


def _why_no_blocks(vectors: Pair, alike: float) -> str:
    """Say how long blocks of time would have to last, and how long the recordings are."""
    lengths = [block_text(covered(*side.places())) for side in vectors]
    holding = f"the reference holds {lengths[0]}, the new windows {lengths[1]}"
    if not math.isfinite(alike):
        return f"Windows stay alike over whole recordings, so no block of time is independent: {holding}."
    block = LONGER * alike
    return (
        f"Windows stay alike for {block_text(alike)}, so a block must last {block_text(block)} to be independent of "
        f"the next. Each side needs {ENOUGH} of them, {block_text(ENOUGH * block)}, and {holding}."
    )


def _seconds_alike(vectors: Pair) -> float:
    """Return how many seconds apart windows of a recording must be before they are no longer alike."""
    return max(seconds_alike(side.x, *side.places()[:2]) for side in vectors)
