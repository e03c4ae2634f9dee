"""Following of tasks with emails about released rounds; badges of models; the board as JSON."""
