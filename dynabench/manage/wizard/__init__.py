"""The pages on which a configuration is put together step by step."""
