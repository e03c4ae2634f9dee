"""Adapters that ask target models for predictions; no database, no torch."""
