"""Texts that people write about: reading files of them, and bringing them into a round."""
