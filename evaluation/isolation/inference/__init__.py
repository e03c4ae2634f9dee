"""Evaluate without a database: send examples, check answers, score them. For runs and checks."""
