"""Mail: sending it, and the addresses that the site accepts."""
