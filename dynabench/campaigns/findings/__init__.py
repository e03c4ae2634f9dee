"""What a study found and what that cost: coverage, novelty, parts of the cost."""
