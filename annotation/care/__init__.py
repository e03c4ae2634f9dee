"""Harm kept small: the time and the number of harmful texts that a person reads, with breaks."""
