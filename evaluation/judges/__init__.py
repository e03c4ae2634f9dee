"""Other ways to judge answers: language models, owners' metrics, and paraphrases."""
