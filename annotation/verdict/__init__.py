"""Pure rules on whether the author fooled the model: how answers are compared."""
