"""What else says how good an answer is: language models, owners' metrics, and other wordings."""
