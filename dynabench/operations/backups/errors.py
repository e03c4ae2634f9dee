"""The error that stops a backup, its restoration or a move."""


class BackupError(Exception):
    """Raised if a backup, a restoration or a move fails. The message says why, and what to do."""
