"""Limits on how many harmful texts a person reads and for how long, with breaks."""
