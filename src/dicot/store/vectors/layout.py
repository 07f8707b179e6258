"""What files of vectors hold: their columns, and where they keep what the vectors were made of."""

# Column of a .parquet, in this order -> its array in a part. The vector comes last, "part" first where there are two.
COLUMNS = {"recording": "recording", "start": "start", "end": "end", "group": "group", "label": "y"}
SECONDS = ("start", "end")
# Entry of an .npz, or key of a .parquet's metadata: where the cases came from and how they were embedded.
SOURCE = "dicot.source"
KEEP_SOURCE = (".parquet", ".npz")
