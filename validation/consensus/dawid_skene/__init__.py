"""Dawid and Skene's model: whom to believe, and how probable each label is."""
