"""Boards as they were: frozen rates, snapshots and what changed between two, forks."""
