"""Shorter evaluations: which questions to ask next, when to stop, and what the answers say."""
