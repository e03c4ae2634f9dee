"""The program inside the sandbox: it loads a model's folder and answers examples. No Django."""
