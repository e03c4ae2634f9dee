"""Comments on examples, among the members who may read the task."""
