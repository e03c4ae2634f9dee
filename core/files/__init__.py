"""Where bytes lie, tables as files, and checks of strangers' files with limits."""
