"""Whom a model's results and its place in the quota count for.

A submission keeps its person (`core.accounts.counting`) when the account is deleted or the model is
passed on to another member of its team, for as long as what was shown of it counts.
"""

from django.db.models import Q

from core.accounts.counting import find_counted_person
from core.accounts.models import CountedPerson, PersonAccount, User
from evaluation.models import Submission


def build_person_filter(user: User) -> Q:
    """Return the condition for submissions that count for a person, including deleted accounts.

    Submissions without a person were stored by a release that did not record people; they are found
    by owner.
    """
    person = PersonAccount.objects.filter(user=user).values("person")
    return Q(person__in=person) | Q(person=None, owner=user)


def note_submitter(owner: User) -> None:
    """Set the person of the owner's submissions that have none.

    Takes no lock, because repeating it has the same result.
    """
    unknown = Submission.objects.filter(owner=owner, person=None)
    if unknown.exists():
        unknown.update(person=find_counted_person(owner))


def lock_submitter(submission: Submission) -> CountedPerson | None:
    """Lock and return the person for whom a submission counts. Call this in a transaction.

    A submission without a person gets its owner's. None if it has neither.
    """
    if submission.owner:
        note_submitter(submission.owner)
    people = CountedPerson.objects.select_for_update(of=("self",), no_key=True)
    # A person may be joined with another one until its row is locked, so look again until it is.
    while Submission.objects.filter(pk=submission.pk).exclude(person=None).exists():
        if locked := people.filter(submissions=submission).first():
            return locked
        # Between both queries the person was joined with another one. The submission is now theirs.
    return None


def note_submitters() -> None:
    """Set the person of all submissions from a release that did not record people."""
    unknown = Submission.objects.filter(person=None).values("owner")
    for owner in User.objects.filter(pk__in=unknown):
        note_submitter(owner)
