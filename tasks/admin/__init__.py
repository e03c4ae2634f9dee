"""The admin's pages of this room; who sees what there follows from roles (`roles`)."""

from tasks.admin import contexts, proposals, rounds, targets, tasks

__all__ = ["contexts", "proposals", "rounds", "targets", "tasks"]
