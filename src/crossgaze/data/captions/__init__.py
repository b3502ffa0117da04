"""Captioned image sets: one type, and a reader for each format that users have."""
