"""From whatever a user has to (cases, channels, time): the one place where input is checked and converted."""

from dicot.data.cases import Scale
from dicot.data.collection import Windows, check_collection
from dicot.data.inspection import inspect_recordings, suggest_windows
from dicot.data.readers import find_recordings, read_recording, read_recordings
from dicot.data.reading import Reading
from dicot.data.recording import Recording
from dicot.data.splits import Split, hold_out, read_split, read_windows, split_groups
from dicot.data.stream import RecordingStream

__all__ = [
    "Reading",
    "Recording",
    "RecordingStream",
    "Scale",
    "Split",
    "Windows",
    "check_collection",
    "find_recordings",
    "hold_out",
    "inspect_recordings",
    "read_recording",
    "read_recordings",
    "read_split",
    "read_windows",
    "split_groups",
    "suggest_windows",
]
