"""The data: readers of files, generators, and how classes are divided."""
