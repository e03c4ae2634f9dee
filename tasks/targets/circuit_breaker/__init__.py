"""Targets that keep failing are left alone for a while, and asked again when it is over."""
