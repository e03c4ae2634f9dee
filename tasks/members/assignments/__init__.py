"""Assignments, the work that owners request from people. Later rooms count what was done."""
