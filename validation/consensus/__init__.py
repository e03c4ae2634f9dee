"""Pure rules on votes: when they decide, what they say together, and who is asked to judge."""
