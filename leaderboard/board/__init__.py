"""The board of a task: its matrix of numbers, the options of a request, its page and exports."""
