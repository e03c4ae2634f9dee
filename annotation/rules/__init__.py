"""Pure rules about writing: near duplicates, prompts, typing evidence and reading limits."""
