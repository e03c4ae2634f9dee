"""Deletes people: first the account, then their texts.

What is deleted, and what stays without a name, is decided in:

- `core/accounts/deletion_services.py`: the account, its addresses, and names in the logs
- `core/accounts/counting.py`: hashes of the addresses, for quotas and results
- `annotation/erasure.py`: the texts of examples, drafts and files
- `validation/erasure.py`: comments and further answers; the votes stay
- `evaluation/submissions/services.py`: models
- `leaderboard/arena/battles/services.py`: conversations of battles

`core/accounts/erasure_log.py` notes deletions, so that a restored backup repeats them.
"""

from django.db import transaction

from annotation.aids.suggestions import count_suggestions_today
from annotation.erasure import erase_drafts, erase_examples
from annotation.selectors import count_tries_today
from core.accounts.administrators import LastAdministrator, are_all_administrators
from core.accounts.counting import store_spent_quotas
from core.accounts.deletion_services import delete_user
from core.accounts.models import Annotator, User
from core.periodic import register_daily
from dynabench.campaigns.before.questionnaire_services import forget_answers
from dynabench.catches.services import delete_shared_catches
from evaluation.submissions.services import transfer_team_models, withdraw_all_models
from evaluation.submissions.teams.services import assign_missing_owners, leave_all_teams
from evaluation.test_sets.submitters import record_submitter
from leaderboard.arena.battles.selectors import count_battles_today_by_quota
from leaderboard.arena.battles.services import erase_conversations
from leaderboard.people.services import delete_goals
from validation.erasure import erase_texts
from validation.judging.queue import count_passes_by_quota


def delete_person(*, user: User, is_repeated: bool = False) -> None:
    """Withdraw the person's models, then delete the account and erase what they wrote.

    Accepted models of a team remain with the team. The use of today's quotas is stored
    under hashes of the person's addresses (`core.accounts.counting`), which cannot be
    linked to the pseudonym.

    If the last step is interrupted, `manage.py purge_deleted` finishes it.
    is_repeated: see `delete_user`. Raises LastAdministrator.
    """
    if not is_repeated and are_all_administrators([user.pk]):
        raise LastAdministrator
    # Whose a model was must be noted while the account can still be found.
    record_submitter(user)
    transfer_team_models(owner=user)
    withdraw_all_models(owner=user)
    leave_all_teams(user=user)
    # Together: an account that is gone cannot be asked what it had used.
    with transaction.atomic():
        store_spent_quotas(user, _count_used_today(user))
        annotator = delete_user(user=user, is_repeated=is_repeated)
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
        count_passes_by_quota,
        count_battles_today_by_quota,
    ):
        use_by_quota |= count_today(annotator)
    return use_by_quota


def erase_work(annotator: Annotator) -> int:
    """Erase the texts of a person who has left; return how many examples contained any."""
    erase_drafts(annotator=annotator)
    erase_texts(validator=annotator)
    delete_goals(annotator=annotator)
    delete_shared_catches(annotator=annotator)
    forget_answers(annotator=annotator)
    erase_conversations(voter=annotator)
    return erase_examples(annotator=annotator)


@register_daily(
    counts="examples of deleted accounts emptied", why="A deletion may have been interrupted."
)
def purge_deleted() -> int:
    """Finish interrupted account deletions: erase the texts of people who have left.

    Their models are withdrawn or transferred, too. Return how many examples contained texts. A
    person has left if their annotator, unless imported, has no user, because they or an
    administrator deleted the account.
    """
    # What `delete_person` began and did not finish.
    transfer_team_models(owner=None)
    withdraw_all_models(owner=None)
    assign_missing_owners()
    departed_annotators = Annotator.objects.exclude(source=Annotator.Source.IMPORT).filter(
        user__isnull=True
    )
    return sum(erase_work(annotator) for annotator in departed_annotators)
