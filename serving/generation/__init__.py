"""Language models: prepared once, run together in one batch, called by OpenAI's protocol."""
