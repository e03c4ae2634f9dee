"""Workers on people's own machines, which lease runs over HTTPS and evaluate their own models."""
