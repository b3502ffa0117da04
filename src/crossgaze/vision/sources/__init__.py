"""Where regions come from: a grid, the region model that ships, selective search, given boxes."""
