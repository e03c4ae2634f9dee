"""Pure rules on votes: when they decide, how probable labels are, and which examples are judged."""
