"""Language models that write: prepared once, run together in one batch, asked as OpenAI's are."""
