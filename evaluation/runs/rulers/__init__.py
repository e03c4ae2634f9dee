"""A task's ruler: choose its anchors, expect scores from them, and show what is missing."""
