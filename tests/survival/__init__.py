"""Damaged files: whatever they hold, the library answers with an error of its own or with the right result.

`python -m tests.survival --files 5000` makes that many of them from one small sound file per kind and reads each as a
user would, in a process of its own that may take ten seconds and 500 MB.
"""

import os

# Before torch is loaded: the threads of its libraries do not live on in a forked process, which then waits for them.
os.environ["OMP_NUM_THREADS"] = "1"
