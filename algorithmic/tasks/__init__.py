"""The tasks, one kind per file; `registry` knows them by name."""
