"""Text processing: words, names, languages and documents."""
