"""From whatever a user has to (cases, channels, time): the one place where input is checked and converted."""

from dicot.data.collection import Windows, check_collection
from dicot.data.files import read_split, read_windows
from dicot.data.policies import Scale
from dicot.data.recordings import slide, split_groups
from dicot.data.splits import Split, hold_out
from dicot.data.tables import from_table

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
