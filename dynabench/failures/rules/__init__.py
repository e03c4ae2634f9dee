"""Pure rules: vectors of words, groups of similar tries, and their error rates."""
