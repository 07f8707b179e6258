"""Our own tables and the paper: run from a clone by `python -m bench`, not part of the installed library.

Importing it registers the paper's large data sets, what stands in for them, and the paper's suites.
"""

import bench.datasets
import bench.paper.suites  # noqa: F401
