"""The base class of submitted kinds: what they define besides their facts (`evaluation.kinds`)."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import KINDS, Kind, Words
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.receiving import ReceivedModel
from evaluation.submissions.requirements import Problem, Sources


class SubmissionKind(Kind):
    """A kind of submission, with its texts, its form, and the way its files are received."""

    PARTS = (*Kind.PARTS, "title", "words", "form", "find_problem", "receive")

    title: ClassVar[Words]
    """The kind's name, on the page where people choose a kind and above its form."""
    words: ClassVar[Words]
    """A description of the kind for the page where people choose one."""
    form: ClassVar[type[SubmitForm]]
    """The form with which people submit this kind."""

    @abstractmethod
    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the first field that is missing or wrong, and a sentence about it; None if valid.

        The sentence is marked with `gettext_noop`: the API and the page translate it.
        """

    @abstractmethod
    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack or fetch the files into a folder, check them, and return the model to call.

        Called by a worker, with a lease and without a transaction. Raises one of
        `intake.REFUSAL_ERRORS` with the reason if the submission is refused.
        """


def find_submission_kind(name: str) -> SubmissionKind | None:
    """Return the kind of that name if people can submit it; None otherwise."""
    kind = KINDS.get(name)
    return kind if isinstance(kind, SubmissionKind) else None
