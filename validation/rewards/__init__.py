"""Points for a person's examples and judgements, shown on their own pages."""
