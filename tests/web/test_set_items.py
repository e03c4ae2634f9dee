"""The properties of a set's items: estimated on the queue, for editors who may read labels."""

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from core.accounts.services import get_annotator
from evaluation.models import ItemFit, ItemProperty, Submission
from evaluation.runs import item_services
from evaluation.runs.item_services import refresh_item_properties
from evaluation.test_sets.items import MIN_MODELS
from tasks.models import TaskMember
from tests.support.compared_models import rows_of
from tests.support.evaluations import set_version
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
)
from tests.support.judging import write
from tests.support.set_items import (
    SIZE,
    WRONG,
    answer_by_ability,
    answer_in_two_languages,
)
from validation.models import Validation

pytestmark = pytest.mark.django_db
URL = "/own/nli/evaluation-sets/dev/v1/items/"
LANGUAGES = "/api/v1/tasks/nli/evaluation-sets/dev/versions/1/languages/"
API = "/api/v1/tasks/nli/evaluation-sets/dev/versions/1/items/"


@pytest.fixture
def task():
    return TaskFactory(code="nli")


@pytest.fixture
def version(task):
    return set_version(task, rows=rows_of(SIZE))


@pytest.fixture
def editor(task):
    user = UserFactory()
    TaskMember.objects.create(task=task, user=user, role="owner")
    return user


def test_items_are_estimated_once_enough_models_have_answered(version):
    answer_by_ability(version, MIN_MODELS - 1)
    assert not refresh_item_properties(version)
    answer_by_ability(version, 21, first=MIN_MODELS - 1)
    assert refresh_item_properties(version)
    fit = ItemFit.objects.get()
    assert (fit.version, fit.model_count) == (version, 40)
    items = list(fit.items.all())
    assert [item.uid for item in items] == [f"u{number}" for number in range(SIZE)]
    assert [item.position for item in items if item.label_may_be_wrong] == [WRONG]
    stated = [(item.position, item.difficulty) for item in items if item.difficulty is not None]
    # Apart from the wrong label, difficulty grows along the set.
    places, difficulties = zip(*(one for one in stated if one[0] != WRONG), strict=True)
    assert np.corrcoef(places, difficulties)[0, 1] > 0.9
    # Nobody voted on uploaded rows.
    assert {(item.votes, item.people_wrong, item.ambiguity) for item in items} == {(0, None, None)}


def test_items_that_change_for_later_models_are_marked(client, version, editor):
    leaked = 33
    answer_by_ability(version, 60)
    # The hardest third leaked: later models know one of its items, whatever their ability.
    answer_by_ability(version, 60, first=60, known=leaked)
    Submission.objects.update(queued_at="2026-01-01T00:00:00Z")
    later_names = [f"model {number}" for number in range(60, 120)]
    Submission.objects.filter(name__in=later_names).update(queued_at="2026-03-01T00:00:00Z")
    assert refresh_item_properties(version)
    fit = ItemFit.objects.get()
    assert fit.divided_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert [item.position for item in fit.items.filter(has_drifted=True)] == [leaked]
    item = fit.items.get(position=leaked)
    assert item.drift > 3 * item.drift_error > 0
    client.force_login(editor)
    page = client.get(f"{URL}?order=drifted")
    marks = {"doubtful": 1, "easier": 1, "harder": 0, "translations": 0}
    assert page.context["marks"] == marks
    first = page.context["items"][0].item
    assert (first.position, first.has_drifted) == (leaked, True)
    items = client.get(API).json()["results"]
    assert [row["uid"] for row in items if row["has_drifted"]] == [f"u{leaked}"]


def test_languages_are_compared_by_translations(client, task, version, editor):
    bad, half = 35, SIZE // 2
    # The second half is German, and each of its examples translates one of the first half.
    rows = [
        replace(
            row,
            uid=f"q{place % half}-{'de' if place >= half else 'en'}",
            slices={"language": ("de" if place >= half else "en",)},
        )
        for place, row in enumerate(rows_of(SIZE))
    ]
    translated = set_version(task, "translated", rows=rows)
    answer_in_two_languages(translated, 80, bad=bad)
    assert refresh_item_properties(translated)
    fit = ItemFit.objects.get(version=translated)
    assert fit.why_no_languages == ""
    language = fit.languages.get()
    assert (language.language, language.reference) == ("de", "en")
    assert (language.item_count, language.pair_count) == (half, half)
    assert (language.direction, language.high < 0) == ("harder", True)
    flagged = fit.items.filter(differs_from_translation=True)
    assert [item.position for item in flagged] == [bad]
    client.force_login(editor)
    page = client.get(f"{URL.replace('dev', 'translated')}?order=translated")
    assert page.context["items"][0].item.position == bad
    assert page.context["languages"] == [language]
    assert page.context["marks"]["translations"] == 1
    languages = client.get(LANGUAGES.replace("dev", "translated")).json()
    assert languages["why_not"] == ""
    assert [row["language"] for row in languages["languages"]] == ["de"]
    lines = client.get(f"{URL.replace('dev', 'translated')}?format=csv").text.splitlines()
    marked = [
        line["uid"] for line in csv.DictReader(lines) if line["differs_from_translation"] == "True"
    ]
    assert marked == [f"q{bad - half}-de"]


def test_a_set_in_one_language_says_why_none_is_compared(client, version, editor):
    client.force_login(editor)
    assert client.get(LANGUAGES).json() == {"why_not": "", "languages": []}
    answer_by_ability(version, 20)
    assert refresh_item_properties(version)
    assert client.get(LANGUAGES).json() == {"why_not": "one_language", "languages": []}
    assert client.get(URL).context["languages"] == []
    assert set(ItemProperty.objects.values_list("language", flat=True)) == {"en"}


def test_the_day_of_the_release_divides_if_both_sides_have_models(version):
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in range(30)]
    middle = days[14]
    assert item_services.choose_dividing_day(days, days[11]) == days[11]
    # Too few before it, so the model in the middle divides.
    assert item_services.choose_dividing_day(days, days[3]) == middle
    assert item_services.choose_dividing_day(days, None) == middle
    assert item_services.choose_dividing_day(days[:19], None) is None
    assert item_services.choose_dividing_day([middle] * 30, None) is None
    assert item_services.find_release_day(version) is None


def test_few_new_models_change_nothing_and_many_replace_the_rows(version):
    answer_by_ability(version, 20)
    assert refresh_item_properties(version)
    former_ids = set(ItemProperty.objects.values_list("pk", flat=True))
    answer_by_ability(version, 1, first=20)
    assert not refresh_item_properties(version)
    answer_by_ability(version, 1, first=21)
    assert refresh_item_properties(version)
    assert ItemFit.objects.get().model_count == 22
    assert ItemProperty.objects.count() == SIZE
    assert former_ids.isdisjoint(ItemProperty.objects.values_list("pk", flat=True))


def test_large_sets_and_withdrawn_models_are_left_out(version, monkeypatch):
    answer_by_ability(version, 20)
    model = version.runs.first().submission
    model.withdrawn_at = "2026-01-01T00:00:00Z"
    model.save(update_fields=["withdrawn_at"])
    assert not refresh_item_properties(version)
    answer_by_ability(version, 2, first=20)
    monkeypatch.setattr(item_services, "MAX_ITEMS", SIZE - 1)
    assert not refresh_item_properties(version)
    monkeypatch.undo()
    assert refresh_item_properties(version)


def test_votes_of_people_say_how_hard_and_ambiguous_an_item_is(task):
    round = RoundFactory(task=task)
    ContextFactory(round=round)
    example = write(round, UserFactory())
    votes = [{"label": "neutral"}] * 3 + [{"label": "entailment"}, {"verdict": "flagged"}]
    for vote in [*votes, {"label": "contradiction", "by_program": True}]:
        Validation.objects.create(
            example=example,
            validator=get_annotator(UserFactory()),
            author=example.annotator,
            **vote,
        )
    rows = rows_of(SIZE)
    own_row = replace(rows[1], uid=str(example.uuid))
    version = set_version(task, "round-1", rows=[own_row, *rows[2:]], round=round)
    examples = item_services._find_examples(version, [own_row])
    assert own_row.gold == ("neutral",)
    assert examples == {str(example.uuid): example.pk}
    columns = item_services.describe_votes(
        item_services.read_votes(examples.values())[example.pk],
        {"neutral", "correct"},
        ("a", "b", "c"),
    )
    assert columns["votes"] == 4
    assert columns["people_wrong"] == pytest.approx(1.5 / 5)
    assert columns["people_wrong_low"] < 0.3 < columns["people_wrong_high"]
    assert columns["ambiguity_low"] < columns["ambiguity"] < columns["ambiguity_high"]


def test_editors_read_items_on_a_page_in_a_file_and_by_the_api(client, version, editor):
    client.force_login(editor)
    page = client.get(URL)
    assert page.context["fit"] is None
    assert client.get(API).json()["results"] == []
    answer_by_ability(version, 24)
    refresh_item_properties(version)
    page = client.get(URL)
    assert page.context["items"][0].item.position == WRONG
    assert "Hypothesis 7." in page.text
    hardest = client.get(f"{URL}?order=hard").context["items"]
    shares = [shown.item.right_share for shown in hardest]
    assert shares == sorted(shares)
    lines = list(csv.DictReader(client.get(f"{URL}?format=csv").text.splitlines()))
    assert [line["uid"] for line in lines] == [f"u{number}" for number in range(SIZE)]
    items = client.get(API).json()["results"]
    assert [item["uid"] for item in items if item["label_may_be_wrong"]] == [f"u{WRONG}"]
    assert items[WRONG]["example"] is None


@pytest.mark.parametrize(
    ("role", "status"), [("owner", 200), ("editor", 200), ("reviewer", 403), ("judge", 403)]
)
def test_others_learn_nothing_of_labels(client, task, version, role, status):
    user = UserFactory()
    client.force_login(user)
    addresses = (URL, API, LANGUAGES)
    assert {client.get(address).status_code for address in addresses} == {404}
    TaskMember.objects.create(task=task, user=user, role=role)
    assert {client.get(address).status_code for address in addresses} == {status}
    TaskMember.objects.filter(user=user).update(is_blind=True)
    if role == "owner":
        assert {client.get(address).status_code for address in addresses} == {403}
