"""Everything that only serves the paper."""
