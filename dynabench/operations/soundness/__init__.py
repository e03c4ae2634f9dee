"""Checks of an installation, for the doctor and `/readyz/`."""
