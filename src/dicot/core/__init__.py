"""What everything stands on: errors, files, processes, devices, progress."""
