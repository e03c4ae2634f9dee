"""The base class of submitted kinds: what they define besides their facts (`evaluation.kinds`)."""

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from django.utils.translation import gettext_lazy

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import KINDS, Kind, Words
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.receiving import ReceivedModel
from evaluation.submissions.requirements import Problem, Sources

GROUP_TITLES = {
    "files": gettext_lazy("Files"),
    "hub": gettext_lazy("Hub"),
    "served": gettext_lazy("Served by you"),
}
"""The groups of kinds on the page where people choose one, in its order."""


class SubmissionKind(Kind):
    """A kind of submission, with its texts, its form, and the way its files are received."""

    PARTS = (*Kind.PARTS, "title", "words", "form", "find_problem", "receive")

    title: ClassVar[Words]
    """The kind's name, on the page where people choose a kind and above its form."""
    words: ClassVar[Words]
    """What people submit, in one line, for the page where they choose a kind."""
    details: ClassVar[Words] = ""
    """What else they should know, above the form; "" if nothing."""
    group: ClassVar[str] = "files"
    """Where the model comes from: a key of GROUP_TITLES."""
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
