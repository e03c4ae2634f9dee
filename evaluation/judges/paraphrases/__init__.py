"""Paraphrased examples: a language model writes them, people check them, set versions use them."""
