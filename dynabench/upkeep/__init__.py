"""What is known of the site itself, not of tasks or people: jobs of the clock, incidents."""
