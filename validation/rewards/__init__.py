"""Points for what a person wrote and judged."""
