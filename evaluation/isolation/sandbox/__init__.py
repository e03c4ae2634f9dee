"""Everything that runs untrusted models: containers, processes, endpoints, limits."""
