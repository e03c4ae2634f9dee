"""Workers on people's own machines, which take leases over HTTPS and evaluate their models."""
