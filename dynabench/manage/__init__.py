"""The pages on which owners run their tasks."""
