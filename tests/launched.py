"""A process that `launch` starts in tests, without torch: `python -m tests.launched KIND`."""

import os
import signal
import sys
import time

kind, rank = sys.argv[1], int(os.environ["RANK"])
if kind == "well":
    sys.stdout.write(f"rank {rank}\n")
elif kind == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
elif kind == "fails" and rank == 1:
    sys.exit("there is no room for me")
elif kind == "wrong":
    sys.exit("a wrong call")
else:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
