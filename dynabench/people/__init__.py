"""A person's own pages: their work, their data, what they may join."""
