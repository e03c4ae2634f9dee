"""Checks of untrusted files and models, and the sandboxes that run and measure them."""
