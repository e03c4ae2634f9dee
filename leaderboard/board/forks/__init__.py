"""Forks: weights that people keep under a name. The API and the URLs import it."""
