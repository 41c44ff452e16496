"""Whole networks, from tokens to logits; `registry` knows them by name."""
