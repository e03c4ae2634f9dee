"""The admin's pages of this room; who sees what there follows from roles (`roles`)."""

from tasks.admin import contexts, generators, groups, rounds, targets, tasks

__all__ = ["contexts", "generators", "groups", "rounds", "targets", "tasks"]
