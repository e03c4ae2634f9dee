"""Submitted models that stay in the sandbox for a while, so that people can try to fool them."""
