"""Pure rules, for everybody: when votes decide, agreement, Dawid and Skene's model, rates."""
