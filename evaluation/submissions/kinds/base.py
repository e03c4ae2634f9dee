"""What a kind of submission must bring besides its facts (`evaluation.kinds`)."""

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
    """A kind of submission: its words, its form, and how its files are received."""

    PARTS = (*Kind.PARTS, "title", "words", "form", "problem", "receive")

    title: ClassVar[Words]
    """Its name on the page where people choose a kind, and above its form."""
    words: ClassVar[Words]
    """What is said of it before it is chosen."""
    form: ClassVar[type[SubmitForm]]
    """The form on which it is submitted."""

    @abstractmethod
    def problem(self, sources: Sources) -> Problem | None:
        """Return the field that is missing or wrong and a sentence about it; None if all is well.

        The sentence is marked with `gettext_noop`: the API and the page translate it.
        """

    @abstractmethod
    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack or fetch its files into a folder, check them, and return what can be asked.

        A worker calls it, with a lease and no transaction. Raises Refused, with what is wrong.
        """


def find_submission_kind(name: str) -> SubmissionKind | None:
    """Return the kind of that name if people can submit it; None otherwise."""
    kind = KINDS.get(name)
    return kind if isinstance(kind, SubmissionKind) else None
