"""Training: losses, constraints, batches, and the loop around them."""
