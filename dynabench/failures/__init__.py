"""Where a model to fool fails: groups of tries with more errors than the rest."""
