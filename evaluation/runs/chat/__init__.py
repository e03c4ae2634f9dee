"""Submitted chat models behind OpenAI's interface: prompt, examples from train, cost, endpoint."""
