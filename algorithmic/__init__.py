"""Algorithmic tasks as masked sequence completion: data only, numpy only."""
