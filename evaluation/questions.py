"""What this room asks the roof, which has programs of its own in images (`core.questions`)."""

from collections.abc import Set

from django.db.models import Q

from core.questions import UnansweredQuestion, declare_question


@declare_question
def build_kept_uploads_condition() -> Q:
    """Return the condition of uploads that a program's image is still loaded from.

    They are neither open nor old, and their owner can't discard them.
    """
    raise UnansweredQuestion


@declare_question
def list_program_digests(*, is_needed: bool) -> Set[str]:
    """Return the ids of images of programs: those that a job needs now, or all others."""
    raise UnansweredQuestion
