"""The owners' pages on which a round is set up: contexts, targets, people, and what is missing."""
