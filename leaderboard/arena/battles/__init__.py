"""Live battles of an arena: two unnamed models answer one person, who chooses. Pages and writes."""
