"""The board of a task: its matrix of numbers, what a request asks of it, page and exports."""
