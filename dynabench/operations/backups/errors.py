"""The error that stops a backup, its restoration or a move."""


class BackupError(Exception):
    """Raised when a backup or restoration fails. The message gives the reason and the remedy."""
