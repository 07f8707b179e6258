"""What everything stands on: errors, files, processes, devices, progress."""

__version__ = "0.1.0"
