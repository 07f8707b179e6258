"""From whatever a user has to (cases, channels, time): the one place where input is checked and converted."""

from dicot.data.allowance import Allowance as Allowance
from dicot.data.cases import Scale as Scale
from dicot.data.collection import Windows as Windows
from dicot.data.collection import check_collection as check_collection
from dicot.data.inspection import inspect_recordings as inspect_recordings
from dicot.data.readers import read_recording as read_recording
from dicot.data.reading import Reading as Reading
from dicot.data.splits import Split as Split
from dicot.data.splits import hold_out as hold_out
from dicot.data.splits import split_groups as split_groups
from dicot.data.suggestion import suggest_windows as suggest_windows
