"""Work behind the pages: the queue, processes that are kept going, and what happens to the site."""
