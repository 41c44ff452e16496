"""Few-shot learning: new classes from a few images, beside the base classes."""
