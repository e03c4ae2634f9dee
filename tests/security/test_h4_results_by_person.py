"""An account deleted and made again with the same address gets no second result and no quota.

A sealed set shows each person a few rounded results, which is all that it tells. Whoever deletes
their account and signs up again would read it out, result by result.
"""

from datetime import timedelta
from io import StringIO

import pytest
from allauth.account.models import EmailAddress
from django.core.management import call_command
from django.utils import timezone

from annotation import selectors as annotation_selectors
from annotation.aids.suggestions import AID_NAME, count_suggestions_today
from annotation.context_picking.services import assign
from annotation.models import Suggestion
from annotation.selectors import TRIES_LABEL
from core.accounts.counting import (
    KEY_PURPOSE,
    build_quota_name,
    count_spent_today,
    find_counted_person,
    is_key_lost,
    tidy_counted_people,
)
from core.accounts.erasure_log import derive_erasure_key, read_erasure_log, write_erasure_log
from core.accounts.models import (
    AddressMark,
    CountedPerson,
    PersonAccount,
    SiteKey,
    SpentQuota,
    User,
    confirm_address,
)
from core.accounts.services import get_annotator
from core.errors import Refused
from dynabench.operations.backups import restoring
from dynabench.people.deletion.services import delete_person
from evaluation.models import EvaluationRun, Submission, Team
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run
from evaluation.submissions.services import check_quota, find_remaining_quota, submit_model
from evaluation.submissions.teams.services import make_team
from evaluation.submissions.tidying import tidy_submitters
from evaluation.test_sets.shown_scores import describe_disclosure
from leaderboard.arena.battles.selectors import (
    BATTLES_LABEL,
    count_battles_begun_today,
    count_battles_today_by_quota,
)
from leaderboard.models import Battle, Contestant
from tests.support.evaluations import (
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, scripted_target
from tests.support.judging import write
from validation.judging import services as judging
from validation.judging.queue import count_passes_with_deleted_accounts
from validation.models import Skip

pytestmark = pytest.mark.django_db
ADDRESS = "mallory@example.com"


@pytest.fixture(autouse=True)
def _site(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


@pytest.fixture
def version(db):
    """A sealed set, of which a person is shown one result."""
    made = set_version(TaskFactory(code="nli"), "sealed", size=24, answers_public=False)
    assert describe_disclosure(made).max_results == 1
    return made


@pytest.fixture
def is_shown(version, monkeypatch):
    """Whether the result of a further model of somebody is shown."""
    run_with(monkeypatch, ScriptedRunner())

    def ask(owner, **fields):
        model = accepted_model(version.evaluation_set.task, owner, **fields)
        run = queued_run(model, version)
        execute_run(claim_next_run())
        run.refresh_from_db()
        assert run.outcome == "ok"
        return run.is_shown

    return ask


@pytest.fixture
def nli(db):
    """An open round in which people write."""
    round = RoundFactory()
    scripted_target(round)
    ContextFactory(round=round)
    return round


def sign_up(address=ADDRESS):
    """A new account whose address is confirmed."""
    user = User.objects.create_user(address)
    confirm_address(user)
    return user


@pytest.mark.parametrize(
    "again",
    [ADDRESS, "Mallory@Example.COM", "mallory+second@example.com"],
)
def test_an_account_made_again_is_shown_nothing_more(is_shown, again):
    first = sign_up()
    assert is_shown(first)
    delete_person(user=first)
    assert not is_shown(sign_up(again))
    assert is_shown(sign_up("somebody.else@example.com"))


def test_neither_is_one_whose_address_was_changed_before(is_shown):
    first = sign_up()
    EmailAddress.objects.create(user=first, email="other@example.com", verified=True)
    assert is_shown(first)
    EmailAddress.objects.get(email=ADDRESS).remove()
    delete_person(user=first)
    assert not is_shown(sign_up())
    assert not is_shown(sign_up("other@example.com"))


def test_neither_is_a_chain_of_accounts(is_shown):
    """Each account confirms the address of the next one before it goes."""
    first = sign_up("a0@example.com")
    assert is_shown(first)
    for number in range(1, 4):
        address = f"a{number}@example.com"
        EmailAddress.objects.create(user=first, email=address, verified=True)
        delete_person(user=first)
        first = sign_up(address)
        assert not is_shown(first, name=f"m{number}")


def test_two_people_who_turn_out_to_be_one_are_joined(version, is_shown):
    """Both were shown a result; then one confirms the address of the other, deleted account."""
    first, second = sign_up(), sign_up("second@example.com")
    assert is_shown(first)
    assert is_shown(second)
    delete_person(user=first)
    EmailAddress.objects.create(user=second, email=ADDRESS, verified=True)
    person = CountedPerson.objects.get()
    assert set(Submission.objects.values_list("person", flat=True)) == {person.pk}
    assert AddressMark.objects.filter(person=person).count() == 2
    assert not is_shown(second, name="another")


def test_an_address_that_nobody_confirmed_counts_for_nobody(is_shown):
    """Else a stranger could use up the results of whoever has the address."""
    first = sign_up()
    assert is_shown(first)
    stranger = sign_up("stranger@example.com")
    EmailAddress.objects.create(user=stranger, email="mallory+x@example.com", verified=False)
    assert is_shown(stranger)
    assert find_counted_person(stranger) != find_counted_person(first)


@pytest.mark.parametrize("mode", ["optional", "none"])
def test_where_none_need_be_confirmed_the_address_of_the_sign_up_counts(is_shown, settings, mode):
    settings.ACCOUNT_EMAIL_VERIFICATION = mode
    first = User.objects.create_user(ADDRESS)
    assert is_shown(first)
    other = User.objects.create_user("mallory+x@example.com")
    assert is_shown(other)  # nobody has shown to be Mallory, who has an account
    delete_person(user=first)
    delete_person(user=other)
    assert not is_shown(User.objects.create_user(ADDRESS))


def test_a_result_counts_for_who_submitted_it_not_for_who_inherits_it(is_shown):
    first, heir = sign_up(), sign_up("heir@example.com")
    team = make_team(actor=first, name="Lab")
    team.members.create(user=heir, address=heir.email, is_owner=True, joined_at=timezone.now())
    assert is_shown(first, team=team)
    delete_person(user=first)
    assert Submission.objects.get().owner == heir
    assert is_shown(heir, name="own")
    assert not is_shown(sign_up(), name="again")


def test_many_teams_give_a_person_no_further_result(is_shown):
    mallory = sign_up()
    teams = [make_team(actor=mallory, name=f"Team {number}") for number in range(3)]
    shown = [is_shown(mallory, team=team, name=team.name) for team in teams]
    assert shown == [True, False, False]
    for team in Team.objects.all():
        team.members.all().delete()
    assert not is_shown(mallory, name="alone")


def test_the_days_models_are_counted_by_person(version, settings):
    settings.SUBMISSIONS_PER_DAY = 2
    task = version.evaluation_set.task
    source, revision = "user/model", "0" * 40
    first = sign_up()
    for name in ("one", "two"):
        submit_model(
            task=task, owner=first, kind="hub", name=name, source=source, revision=revision
        )
    assert Submission.objects.filter(person=find_counted_person(first)).count() == 2
    Submission.objects.update(state="done")
    delete_person(user=first)
    second = sign_up()
    assert find_remaining_quota(second, task).left == 0
    with pytest.raises(Refused, match="models: 2,"):
        check_quota(task, second)
    assert find_remaining_quota(sign_up("other@example.com"), task).left == 2


def test_tries_and_passes_of_today_are_counted_by_person(nli):
    first, author = sign_up(), sign_up("author@example.com")
    me, task = get_annotator(first), nli.task
    for number in range(3):
        write(nli, first, number)
    passed = [write(nli, author, f"a{number}") for number in range(judging.MAX_PASSES)]
    Skip.objects.bulk_create(Skip(example=one, validator=me) for one in passed)
    delete_person(user=first)
    second = get_annotator(sign_up())
    assert annotation_selectors.count_usage(assign(annotator=second, round=nli)).today_count == 3
    assert count_passes_with_deleted_accounts(second, task) == judging.MAX_PASSES
    with pytest.raises(judging.CapReached):
        judging._check_may_pass(second, task)
    stranger = get_annotator(author)
    assert (
        count_passes_with_deleted_accounts(stranger, task),
        count_spent_today(author.pk, f"{TRIES_LABEL}:{task.pk}"),
    ) == (0, 0)
    SpentQuota.objects.update(day=timezone.now().date() - timedelta(days=1))
    assert annotation_selectors.count_usage(assign(annotator=second, round=nli)).today_count == 0
    assert count_passes_with_deleted_accounts(second, task) == 0


def test_suggestions_and_conversations_of_today_are_counted_by_person(nli):
    first = sign_up()
    me, task = get_annotator(first), nli.task
    Suggestion.objects.create(
        assignment=assign(annotator=me, round=nli), text="Try this.", source="g"
    )
    left, right = (Contestant.objects.create(task=task, name=name) for name in ("a", "b"))
    Battle.objects.create(voter=me, task=task, left=left, right=right, chance=1)
    assert (len(count_suggestions_today(me)), len(count_battles_today_by_quota(me))) == (1, 1)
    delete_person(user=first)
    second = get_annotator(sign_up())
    assert count_spent_today(second.user_id, build_quota_name(AID_NAME, task.pk)) == 1
    assert count_spent_today(second.user_id, build_quota_name(BATTLES_LABEL, task.pk)) == 1
    assert count_battles_begun_today(second, task) == 1


def test_what_is_kept_points_at_no_pseudonym_and_no_text(nli):
    first = sign_up()
    write(nli, first)
    left = get_annotator(first)
    delete_person(user=first)
    left.refresh_from_db()
    assert left.user is None
    for model in (CountedPerson, AddressMark, SpentQuota, PersonAccount):
        related = {field.related_model for field in model._meta.fields if field.is_relation}
        assert related <= {CountedPerson, User}
        assert ADDRESS not in str(list(model.objects.values_list()))
    assert not PersonAccount.objects.exists()
    assert SpentQuota.objects.get().number == 1


def test_marks_go_when_nothing_counts_any_more(version, is_shown):
    first, nobody = sign_up(), sign_up("nobody@example.com")
    assert is_shown(first)
    find_counted_person(nobody)
    for user in (first, nobody):
        delete_person(user=user)
    assert (tidy_submitters(500), tidy_counted_people(500)) == (0, 1)
    assert AddressMark.objects.count() == 1
    Submission.objects.update(queued_at=timezone.now() - timedelta(days=2))
    assert tidy_submitters(500) == 0  # the set is still sealed
    evaluation_set = version.evaluation_set
    type(evaluation_set).objects.update(answers_public=True)
    assert (tidy_submitters(500), tidy_counted_people(500)) == (1, 1)
    assert not AddressMark.objects.exists()
    assert is_shown(sign_up())


def test_nobody_who_is_here_is_tidied_away(is_shown):
    first = sign_up()
    is_shown(first)
    EmailAddress.objects.filter(user=first).delete()
    Submission.objects.update(queued_at=timezone.now() - timedelta(days=2))
    assert (tidy_submitters(500), tidy_counted_people(500)) == (0, 0)


def test_submissions_of_an_older_release_count_too(version, is_shown):
    """They have no person; the account goes before any of them ends."""
    first = sign_up()
    assert is_shown(first)
    Submission.objects.update(person=None)
    PersonAccount.objects.all().delete()
    CountedPerson.objects.all().delete()
    assert not is_shown(first, name="second")
    Submission.objects.update(person=None)
    delete_person(user=first)
    assert not is_shown(sign_up(), name="third")


def test_an_account_that_a_backup_brings_back_is_erased_and_still_counts(
    is_shown, settings, tmp_path
):
    settings.ERASURE_LOG = tmp_path / "erasures.log"
    first = sign_up()
    assert is_shown(first)
    columns = {"pk": first.pk, "email": ADDRESS, "date_joined": first.date_joined}
    delete_person(user=first)
    write_erasure_log()
    back = User.objects.create(**columns)  # the rows of an older backup
    EmailAddress.objects.create(user=back, email=ADDRESS, verified=True)
    key = derive_erasure_key(settings.SECRET_KEY).hex()
    assert ("people", 1) in [*restoring._repeat_erasures(key, read_erasure_log())]
    assert not User.objects.exists()
    assert not is_shown(sign_up(), name="again")


def test_marks_outlive_a_new_secret_key(settings, is_shown):
    first = sign_up()
    assert is_shown(first)
    delete_person(user=first)
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [former]
    call_command("rotate_secrets", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    assert not is_shown(sign_up())


def test_a_lost_secret_key_stops_no_sign_up(settings, is_shown):
    first = sign_up()
    sealed = SiteKey.objects.get(name=KEY_PURPOSE).sealed
    assert not is_key_lost()
    settings.SECRET_KEY = "lost"
    assert is_key_lost()
    second = sign_up("second@example.com")
    assert SiteKey.objects.get(name=KEY_PURPOSE).sealed != sealed
    assert find_counted_person(first) != find_counted_person(second)


def test_a_run_of_somebody_who_left_is_not_shown(version, is_shown):
    model = accepted_model(version.evaluation_set.task, None)
    run = EvaluationRun.objects.create(submission=model, version=version)
    execute_run(claim_next_run())
    run.refresh_from_db()
    assert not run.is_shown
