"""Examples in other words: a language model writes them, people check them, versions get them."""
