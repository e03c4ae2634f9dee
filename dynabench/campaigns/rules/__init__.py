"""Pure rules of campaigns: evidence of careless work, pay, cost, novelty, and owners' texts."""
