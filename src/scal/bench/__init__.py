"""Grids of experiments: who learns what, how well, and how surely."""
