"""Tools of services and selectors: prepared reads, SQL, caches, secrets that are stored."""
