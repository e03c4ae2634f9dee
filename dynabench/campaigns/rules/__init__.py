"""Pure rules of campaigns: evidence of careless work."""
