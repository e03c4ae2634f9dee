"""Pure rules about one example, for everybody: the verdict, near duplicates, the goal in words."""
