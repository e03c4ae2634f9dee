"""Adapters that call target models for predictions. No database, no torch."""
