"""What stops a backup, its restoration or a move; the message says why and what to do."""


class BackupError(Exception):
    """For the person at the command line."""
