"""Pure definitions of rates, agreement and counts, with their intervals and terms."""
