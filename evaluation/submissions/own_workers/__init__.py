"""Machines of others that take leases over HTTPS and evaluate their own people's models."""
