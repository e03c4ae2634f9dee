"""The kinds of submission, a file each: a new file here is a new kind, at every door.

`SubmissionKind` in `base` says what a kind must bring (docs/extending.md).
"""

from core.registry import import_modules
from evaluation.kinds import KINDS, TARGET
from evaluation.submissions.kinds.base import SubmissionKind, find_submission_kind

__all__ = ["KINDS", "TARGET", "SubmissionKind", "find_submission_kind"]

import_modules(__path__, __name__)
