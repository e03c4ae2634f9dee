"""Evaluation runs: requested, scheduled, executed, stored. Submissions and jobs import it."""
