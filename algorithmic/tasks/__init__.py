"""One task a file; `registry` knows them by name."""
