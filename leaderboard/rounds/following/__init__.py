"""People who follow a task: a mail when a round is released. And what others show of a model."""
