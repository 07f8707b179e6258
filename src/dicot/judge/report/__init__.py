"""Results -> one tidy frame -> tables, statistics, figures, pages. Needs the extra `report`."""

from importlib.util import find_spec

from dicot.core.errors import need_extra

if find_spec("pandas") is None:  # every table is made by it; it is imported only where one is made
    raise need_extra("pandas", "report", "A table of results")
