"""Short evaluations of paid models: who may have one, what they ask, and how they end."""
