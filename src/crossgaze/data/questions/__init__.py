"""Sets of questions about images: one type, and a reader for each data set."""
