"""From scores to tables, statistics, figures and one self-contained page."""
