"""What owners ask of people: its rules, and the writes. Later stages count what was done of it."""
