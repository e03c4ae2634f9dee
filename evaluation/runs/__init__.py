"""Evaluation runs: asked for, scheduled, carried out, stored."""
