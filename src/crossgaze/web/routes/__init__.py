"""What the service answers, one file a subject."""
