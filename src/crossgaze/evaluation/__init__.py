"""Measures of what is built, with the counting rules stated."""
