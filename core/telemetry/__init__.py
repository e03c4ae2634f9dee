"""What a running site tells of itself: logs, counts, traces, reports of errors. Any room may."""
