"""Running models that nobody trusts: containers, processes, endpoints, limits, attacks."""
