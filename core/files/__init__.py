"""Files: where their bytes are stored, tables, and checks of strangers' files with limits."""
