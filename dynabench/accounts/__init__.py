"""Old import paths of `core.accounts`, for stored sessions and for releases before 0.4."""
