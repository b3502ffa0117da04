"""Exact scores at the speed of the matrix multiplication: all pairs, chosen pairs, top K."""
