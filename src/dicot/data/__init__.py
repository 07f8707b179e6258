"""From whatever a user has to (cases, channels, time): the one place where input is checked and converted."""

from dicot.data.collection import Windows, check_collection
from dicot.data.files import read_split, read_windows
from dicot.data.folders import find_recordings, read_recordings, windows_from
from dicot.data.inspection import inspect_recordings, suggest_windows
from dicot.data.policies import Scale
from dicot.data.recordingfile import Recording, read_recording
from dicot.data.recordings import slide, split_groups
from dicot.data.splits import Split, hold_out
from dicot.data.tables import from_table

__all__ = [
    "Recording",
    "Scale",
    "Split",
    "Windows",
    "check_collection",
    "find_recordings",
    "from_table",
    "hold_out",
    "inspect_recordings",
    "read_recording",
    "read_recordings",
    "read_split",
    "read_windows",
    "slide",
    "split_groups",
    "suggest_windows",
    "windows_from",
]
