"""Background work: the queue, supervised processes, periodic jobs, incidents of the site."""
