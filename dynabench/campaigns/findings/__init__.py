"""What a study found and what it cost: coverage, novelty, and the cost by part."""
