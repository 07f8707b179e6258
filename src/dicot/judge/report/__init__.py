"""Results -> one tidy frame -> tables, statistics, figures, pages."""
