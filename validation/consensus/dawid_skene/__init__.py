"""Dawid and Skene's model: how reliable each validator is, and how probable each label is."""
