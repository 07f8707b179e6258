"""A process that `launch` starts in tests, without torch: `python -m tests.launched KIND [FOLDER]`."""

import os
import signal
import sys
import time
from pathlib import Path

kind, rank = sys.argv[1], int(os.environ["RANK"])
if kind == "well":
    sys.stdout.write(f"rank {rank}\n")
elif kind == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
elif kind == "fails" and rank == 1:
    sys.exit("there is no room for me")
elif kind == "lonely":
    from dicot.core.processes.launcher import end_with_parent

    end_with_parent()
    Path(sys.argv[2], str(os.getpid())).touch()
    time.sleep(60)
elif kind == "wrong":
    sys.exit("a wrong call")
else:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
