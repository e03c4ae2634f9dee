"""Find the person for whom a model's results and its place in the quota count.

A submission keeps its person (`core.accounts.counting`) for as long as a shown result counts.
Neither deleting the account nor transferring the model to another member of its team changes that.
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


def record_submitter(owner: User) -> None:
    """Set the person of the owner's submissions that have none.

    Takes no lock, because repeating it has the same result.
    """
    submissions = Submission.objects.filter(owner=owner, person=None)
    if submissions.exists():
        submissions.update(person=find_counted_person(owner))


def lock_submitter(submission: Submission) -> CountedPerson | None:
    """Lock and return the person for whom a submission counts. Call this in a transaction.

    A submission without a person gets its owner's. None if it has neither.
    """
    if submission.owner:
        record_submitter(submission.owner)
    people = CountedPerson.objects.select_for_update(of=("self",), no_key=True)
    # A person may be merged with another until the row is locked, so repeat until it is.
    while Submission.objects.filter(pk=submission.pk).exclude(person=None).exists():
        if locked_person := people.filter(submissions=submission).first():
            return locked_person
        # The person was merged with another between the queries, who now has the submission.
    return None


def record_submitters() -> None:
    """Set the person of all submissions from a release that did not record people."""
    owner_ids = Submission.objects.filter(person=None).values("owner")
    for owner in User.objects.filter(pk__in=owner_ids):
        record_submitter(owner)
