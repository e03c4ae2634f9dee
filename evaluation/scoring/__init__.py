"""Numbers of answers: metrics, intervals, robustness and comparison. Pure; for all folders."""
