"""Data of the Long Range Arena: readers and generators, in plain numpy."""
