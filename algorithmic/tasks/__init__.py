"""The tasks, in files by their kind; `registry` knows them by name."""
