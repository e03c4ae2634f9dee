"""Pure rules: when votes decide, agreement, Dawid and Skene's model, rates with intervals."""
