"""Pause calls to targets that keep failing, and probe the targets after the pause."""
