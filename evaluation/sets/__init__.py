"""Evaluation sets: versions that never change, what is sealed, what was there to train on."""
