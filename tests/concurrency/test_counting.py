"""Accounts of one person at the same instant: one person, one quota, one bound."""

import pytest
from allauth.account.models import EmailAddress

from core.accounts import counting
from core.accounts.models import (
    AddressMark,
    CountedPerson,
    PersonAccount,
    SpentQuota,
    User,
    confirm_address,
)
from core.errors import Refused
from dynabench.people.deletion.services import delete_person
from evaluation.contract import Ending, EvaluationResult, Outcome, Usage
from evaluation.models import EvaluationRun, Submission
from evaluation.runs import services as runs
from evaluation.runs.execute import store_outcome
from evaluation.submissions.services import submit_model
from evaluation.test_sets.shown_scores import describe_disclosure
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judging import write

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(3)


@pytest.fixture
def task(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    return TaskFactory(code="nli")


def accounts(number):
    """Accounts of one mailbox, all confirmed."""
    users = [UserFactory(email=f"mallory+{n}@example.com") for n in range(number)]
    for user in users:
        confirm_address(user)
    return users


@pytest.mark.parametrize("repeat", REPEATS)
def test_results_of_two_accounts_of_one_person_are_bounded_together(
    task, at_once, tmp_path, repeat
):
    version = set_version(task, "sealed", answers_public=False)
    most = describe_disclosure(version).max_results
    for number, user in enumerate(accounts(2) * (most + 2)):
        queued_run(accepted_model(task, user, name=f"m{number}"), version)
    file = tmp_path / "answers"
    file.write_bytes(b"")
    found = EvaluationResult(Ending(Outcome.OK, Usage(1.0)), "docker", (), file)
    claimed = [runs.claim_next_run() for _ in range(2 * (most + 2))]
    at_once(lambda run: store_outcome(run, found), claimed)
    assert EvaluationRun.objects.filter(outcome=Outcome.OK).count() == len(claimed)
    assert EvaluationRun.objects.filter(is_shown=True).count() == most


@pytest.mark.parametrize("repeat", REPEATS)
def test_two_accounts_of_one_person_have_one_quota(task, at_once, settings, repeat):
    settings.SUBMISSIONS_PER_DAY = 3
    users = accounts(2)

    def submit(number):
        try:
            submit_model(
                task=task, owner=users[number % 2], kind="hub", name=f"m{number}",
                source="user/model", revision="0" * 40,
            )  # fmt: skip
        except Refused:
            return False
        return True

    assert sum(at_once(submit, range(8))) == 3
    assert Submission.objects.count() == 3


@pytest.mark.parametrize("repeat", REPEATS)
def test_many_tabs_make_one_person(task, at_once, repeat):
    user = UserFactory()
    people = at_once(lambda _: counting.find_counted_person(user).pk, range(6))
    assert len(set(people)) == 1
    assert CountedPerson.objects.count() == PersonAccount.objects.count() == 1


@pytest.mark.parametrize("repeat", REPEATS)
def test_accounts_that_meet_at_once_become_one_person(task, at_once, settings, repeat):
    """Each account has a person; then all confirm the same mailbox, while models arrive."""
    # Four models fit one person's day, so none is refused where the accounts meet first.
    settings.SUBMISSIONS_PER_DAY = 4
    users = [UserFactory() for _ in range(4)]
    for user in users:
        counting.assign_counted_person(user)

    def act(number):
        user = users[number % 4]
        if number < 4:
            EmailAddress.objects.create(user=user, email=f"m+{number}@example.com", verified=True)
        else:
            submit_model(
                task=task, owner=user, kind="hub", name=f"m{number}",
                source="user/model", revision="0" * 40,
            )  # fmt: skip

    at_once(act, range(8))
    person = CountedPerson.objects.get()
    assert AddressMark.objects.get().person == person
    assert PersonAccount.objects.filter(person=person).count() == 4
    assert Submission.objects.filter(person=person).count() == 4


@pytest.mark.parametrize("repeat", REPEATS)
def test_an_account_that_is_deleted_twice_at_once_notes_its_tries_once(task, at_once, repeat):
    round = RoundFactory(task=task)
    ContextFactory(round=round)
    (user,) = accounts(1)
    for number in range(3):
        write(round, user, number)
    at_once(lambda _: delete_person(user=User(pk=user.pk, email=user.email)), range(4))
    assert not User.objects.filter(pk=user.pk).exists()
    assert SpentQuota.objects.get().number == 3


@pytest.mark.parametrize("repeat", REPEATS)
def test_nobody_is_tidied_away_while_they_sign_up_again(task, at_once, repeat):
    for number in range(8):
        person = CountedPerson.objects.create()
        digest = counting._hash_address(f"p{number}@example.com")
        AddressMark.objects.create(digest=digest, person=person)
    users = [UserFactory(email=f"p{number}@example.com") for number in range(8)]
    acts = [lambda: counting.tidy_counted_people(500)]
    acts += [lambda user=user: confirm_address(user) for user in users]
    at_once(lambda act: act(), acts)
    assert PersonAccount.objects.count() == 8
    for user in User.objects.all():
        person = counting.find_counted_person(user)
        assert AddressMark.objects.get(digest=counting._hash_address(user.email)).person == person
