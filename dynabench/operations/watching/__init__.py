"""What operators and others watch: figures for Prometheus, and the page of the site's state."""
