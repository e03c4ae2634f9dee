"""Deleting people: the account at once, then their texts."""

from django.db import transaction

from annotation.aids.suggestions import count_suggestions_today
from annotation.erasure import erase_drafts, erase_examples
from annotation.selectors import count_tries_today
from core.accounts.administrators import LastAdministrator, are_all
from core.accounts.counting import keep_spent
from core.accounts.models import Annotator, User
from core.accounts.services import leave
from core.periodic import daily
from dynabench.campaigns.before.questionnaire_services import forget_answers
from evaluation.submissions.services import transfer_team_models, withdraw_all_models
from evaluation.submissions.teams.services import assign_missing_owners, leave_all_teams
from evaluation.test_sets.submitters import note_submitter
from leaderboard.arena.battles.selectors import count_today_by_quota
from leaderboard.arena.battles.services import erase_conversations
from leaderboard.people.services import forget_goals
from validation.erasure import erase_words
from validation.judging.queue import passes_today


def delete_person(*, user: User, is_repeated: bool = False) -> None:
    """Withdraw the person's models, then delete the account and erase what they wrote.

    Accepted models of a team remain with the team. The use of today's quotas is stored
    under hashes of the person's addresses (`core.accounts.counting`), which cannot be
    linked to the pseudonym.

    If the last step is interrupted, `manage.py purge_deleted` finishes it.
    is_repeated: as in `leave`. Raises LastAdministrator.
    """
    if not is_repeated and are_all([user.pk]):
        raise LastAdministrator
    # Whose a model was must be noted while the account can still be found.
    note_submitter(user)
    transfer_team_models(owner=user)
    withdraw_all_models(owner=user)
    leave_all_teams(user=user)
    # Together: an account that is gone cannot be asked what it had used.
    with transaction.atomic():
        keep_spent(user, _count_used_today(user))
        annotator = leave(user=user, is_repeated=is_repeated)
    # Outside the transaction, some rows at a time: a person may have written thousands.
    if annotator:
        erase_work(annotator)


def _count_used_today(user: User) -> dict[str, int]:
    """Return the person's use of today's quotas with this account, by quota."""
    annotator = Annotator.objects.filter(user=user).first()
    if annotator is None:
        return {}
    use_by_quota: dict[str, int] = {}
    for count_today in (
        count_tries_today,
        count_suggestions_today,
        passes_today,
        count_today_by_quota,
    ):
        use_by_quota |= count_today(annotator)
    return use_by_quota


def erase_work(annotator: Annotator) -> int:
    """Erase the texts of a person who has left; return how many examples contained any."""
    erase_drafts(annotator=annotator)
    erase_words(validator=annotator)
    forget_goals(annotator=annotator)
    forget_answers(annotator=annotator)
    erase_conversations(voter=annotator)
    return erase_examples(annotator=annotator)


@daily(counts="examples of people who left emptied", why="A deletion may have been cut short.")
def purge_deleted() -> int:
    """Erase the texts of everybody who has left; return how many examples contained any.

    A person has left if an annotator of the site or of a panel has no user: deleted on
    their own page or by an administrator.
    """
    # What `delete_person` began and did not finish.
    transfer_team_models(owner=None)
    withdraw_all_models(owner=None)
    assign_missing_owners()
    left = Annotator.objects.exclude(source=Annotator.Source.IMPORT).filter(user__isnull=True)
    return sum(erase_work(annotator) for annotator in left)
