"""Points for what a person wrote and judged: for their own pages."""
