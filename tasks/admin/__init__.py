"""The admin pages of tasks. What a person sees there follows from their roles (`roles`)."""

from tasks.admin import contexts, proposals, rounds, targets, tasks

__all__ = ["contexts", "proposals", "rounds", "targets", "tasks"]
