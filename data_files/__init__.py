"""Careful readers of data files that two experiments share."""
