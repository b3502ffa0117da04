"""Losses, constraints, and the training of every model."""
