"""Perturbations of texts. Each kind proposes edits of a text."""
