"""A question about one photograph: the answers, and a picture of what was looked at."""
