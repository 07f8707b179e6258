"""Labels given by hand: where they are kept, what to label next, and what a classifier of them is worth."""
