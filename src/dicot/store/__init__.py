"""Stores: windows and vectors on disk, and the search over them."""
