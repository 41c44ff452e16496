"""How fast the forms, layers and steps are, as ratios: `make bench`."""
