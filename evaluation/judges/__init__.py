"""Judge answers in other ways: by language models, owners' metrics, and other wordings."""
