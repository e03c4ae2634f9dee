"""Words, names, languages and documents."""
