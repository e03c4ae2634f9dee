"""The owners' pages for setting up a round: contexts, targets, people, and what is missing."""
