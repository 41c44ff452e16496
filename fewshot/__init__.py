"""Few-shot learning: new classes from a few images, added to base classes."""
