"""Evaluation runs: requested, scheduled, executed, stored. Submissions and jobs build on this."""
