"""From a submitted text to a stored example: attempts, asking the targets, the writes."""
