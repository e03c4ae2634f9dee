"""Pure rules about one example: the verdict, near duplicates, what typing looked like."""
