"""The error that stops a backup, its restoration or a move."""


class BackupError(Exception):
    """A failure whose message tells the person at the command line why, and what to do."""
