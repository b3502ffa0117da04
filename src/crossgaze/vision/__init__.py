"""Pixels to regions: reading photographs, backbones, grids, and the extraction pipeline."""
