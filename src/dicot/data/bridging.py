"""Gaps of a few lost rows, which may be bridged: the stretches of a recording with a wider gap."""

from dicot.data.timestamps import Seconds, is_other_rate, stretches

# Gaps that bridge 1, 2, 5 or 10 lost rows. More would be made up, not bridged.
WIDER_GAPS = (2.5, 3.5, 6.5, 11.5)
# The one that is told where rows lie in no window because one or two are lost here and there.
BRIDGED = 3.5
BRIDGE = f"--set gap={BRIDGED:g} --set resample=true"
_WORTH_BRIDGING = 0.1  # share of the rows between gaps from which on it is told


def is_worth_bridging(bridgeable: int, left_out: int) -> bool:
    """Tell whether many of the rows that are left out would be kept."""
    return bridgeable > 0 and bridgeable >= _WORTH_BRIDGING * left_out


def runs_with(times: Seconds, rate: float, gap: float) -> list[slice]:
    """Return the stretches of the usual rate between gaps that are as wide."""
    return [stretch.rows for stretch in stretches(times, gap) if not is_other_rate(stretch.rate, rate)]


def resampled_lengths(times: Seconds, rate: float, gap: float) -> tuple[int, ...]:
    """Return the time steps of each of these stretches once it is resampled, which fills in lost rows."""
    runs = runs_with(times, rate, gap)
    return tuple(round(float(times[run.stop - 1] - times[run.start]) * rate) + 1 for run in runs)
