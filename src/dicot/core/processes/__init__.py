"""Several processes of one command (launcher), on a Ray cluster (cluster), and what one may take of memory (budget)."""
