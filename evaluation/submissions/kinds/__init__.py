"""The kinds of submission, a file each. A new file here adds a kind everywhere.

`SubmissionKind` in `base` says what a kind must define (docs/extending.md).
"""

from core.registry import import_modules
from evaluation.kinds import KINDS, TARGET_KIND
from evaluation.submissions.kinds.base import SubmissionKind, find_submission_kind

__all__ = ["KINDS", "TARGET_KIND", "SubmissionKind", "find_submission_kind"]

import_modules(__path__, __name__)
