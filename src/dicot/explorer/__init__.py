"""The explorer: a map of all windows in a browser, with their series, labels and neighbours."""
