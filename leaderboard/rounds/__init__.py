"""Every model against every round, and whether a task still makes progress."""
