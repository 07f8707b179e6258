"""What vectors are for: labels, outliers, maps."""
