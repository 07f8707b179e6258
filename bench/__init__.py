"""Our own tables and the paper: run from a clone by `python -m bench`, not part of the installed library."""

import bench.datasets  # noqa: F401  (registers the paper's large sets and their stand-ins)
