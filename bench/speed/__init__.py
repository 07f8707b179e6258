"""Speed: training, embedding and search, each beside a plain way or as milliseconds."""
