"""Efficient attentions that the Long Range Arena compares, one kind a file."""
