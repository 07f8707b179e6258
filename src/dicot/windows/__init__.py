"""From whatever a user has to (cases, channels, time): the one place where input is checked and converted."""

from dicot.windows.collection import Windows, check_collection
from dicot.windows.files import read_split, read_windows
from dicot.windows.policies import Scale
from dicot.windows.recordings import slide, split_groups
from dicot.windows.splits import Split, hold_out
from dicot.windows.tables import from_table

__all__ = [
    "Scale",
    "Split",
    "Windows",
    "check_collection",
    "from_table",
    "hold_out",
    "read_split",
    "read_windows",
    "slide",
    "split_groups",
]
