"""What operators and others can watch: metrics for Prometheus, and the status page."""
