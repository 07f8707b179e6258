"""What a command's exit code means; docs/daily.md has the same table for users."""

from typing import TYPE_CHECKING

import typer

from dicot.core.place import find_place

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance

DONE = 0
ERROR = 1  # a sentence on stderr says what is wrong and what to do
WRONG_CALL = 2  # an option, an argument or a setting that the command does not take
PARTIAL = 3  # done, but some files or rows were left out; they are named on stderr
CHANGE_FOUND = 4  # `dicot monitor`: the new windows differ from the reference
CANNOT_TELL = 5  # `dicot monitor`: there is too little to compare for a verdict
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
UNREAD = 141  # 128 and the number of SIGPIPE: the program behind `|` reads no more, as `head` when it has its lines


def end(allowance: "Allowance") -> None:
    """End a command that has done its work: by another exit code where something was left out."""
    if not allowance:
        return
    if find_place().world > 1:
        return  # torchrun and its like take any code but 0 for a failure, and start the run again
    raise typer.Exit(PARTIAL)
