"""Every list of the site: its last row is reached by following the links of its pager."""

import re
from dataclasses import asdict
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Report, TargetOutput, TextKey
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.web import lists
from core.web.lists import ListPage
from dynabench.adversaries.models import AdversaryImage, AdversaryRun, AdversaryTry
from dynabench.campaigns.models import Place
from dynabench.communities.models import Community, Post
from dynabench.manage import review
from dynabench.manage.log import find_readable_entries
from dynabench.studies.models import Study
from dynabench.webhooks.models import Delivery, Webhook
from evaluation.models import (
    Dataset,
    DatasetItem,
    ExpectedScore,
    ItemFit,
    ItemProperty,
    NearCopy,
    Ruler,
    RulerAnchor,
    RulerLink,
    RulerStanding,
    TrainingRun,
)
from leaderboard.models import Battle, Contestant
from tasks.models import Duty, TargetVersion, TaskMember
from tests.support.adversaries import make_adversary
from tests.support.arenas import compare
from tests.support.battles import battle_arena
from tests.support.campaigns import open_campaign, take_part
from tests.support.compared_models import answered, rows_of
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.support.judging import write, write_many
from tests.support.paraphrases import paraphrased
from tests.support.policies import rederive
from tests.support.studies import PLAN
from tests.support.submissions import release_of
from tests.support.teams import team_of
from tests.support.training_pages import REPORT
from tests.web.conftest import HTMX
from validation.consensus.consensus import Policy
from validation.models import Consensus, Validation

TEMPLATES = Path(__file__).parents[2] / "templates"
PAGER = "components/pages.html"
SIZE, MANY = 2, 5
"""Rows of a page while these tests run, and of most lists."""


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(lists, "MAX_PAGE_ROWS", SIZE)
    monkeypatch.setattr(review, "PAGE_SIZE", SIZE)  # the queue itself looks no further than a page


@pytest.fixture
def owner(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return alice


def shown_page(response, parameter):
    """The page of the list that is asked for by this parameter."""
    for context in response.context:
        for values in context.dicts:
            for value in values.values():
                if isinstance(value, ListPage) and value.parameter == parameter:
                    return value
    raise AssertionError(f"{response.request} shows no list with {parameter}")


def link_to(response, parameter, kind="next"):
    """The address of another page of the list, as the pager of this one gives it."""
    link = re.search(rf'id="{parameter}-{kind}"[^>]* href="([^"#]*)', response.text)
    if link is None:
        return ""
    path = response.request["PATH_INFO"]
    address = unescape(link[1])
    return address if address.startswith("/") else path + address


def walk(client, url, parameter="page"):
    """All rows of a list, by its links from the first page on, and the templates of its pages."""
    rows, templates, seen = [], set(), set()
    while url:
        assert url not in seen, f"{url} leads back to itself"
        seen.add(url)
        response = client.get(url)
        assert response.status_code == 200, url
        templates |= {template.name for template in response.templates}
        page = shown_page(response, parameter)
        assert len(page) <= SIZE
        rows += page
        url = link_to(response, parameter)
    return rows, templates


def make_models(task, owner):
    """Published models of a team, of which most answer nearly as the first one does."""
    team = team_of(owner, name="Lab")
    version = set_version(task, "round-1", rows=rows_of(16), may_leave=True)
    runs = []
    for number in range(MANY + 1):
        model = accepted_model(task, owner, f"m{number}", team=team, is_published=True)
        runs.append(answered(model, version, lambda n, step=number + 2: n % step))
    NearCopy.objects.bulk_create(
        NearCopy(run=run, other=runs[0], n=9, equal=9, expected=3, both_wrong=2, equal_wrong=2)
        for run in runs[1:]
    )
    for run in runs[:MANY]:
        run.handed.create(lease_token=run.submission_id, runner="docker", ending={"outcome": "ok"})
    release_of(version, private_test=False)
    paraphrased(version)
    models, first, second = len(runs), runs[0].submission_id, runs[1].submission_id
    compared = f"?a={first}&b={second}&set=round-1"
    return [
        (reverse("evaluation:models", args=["nli"]), "page", models),
        (reverse("evaluation:models", args=["nli"]), "near-copies-page", MANY),
        (reverse("evaluation:my-models"), "page", models),
        (reverse("evaluation:team", args=[team.pk]), "page", models),
        (reverse("evaluation:run-wrong", args=[first, runs[0].pk]), "page", 8),
        (reverse("evaluation:own-workers", args=["nli"]), "page", MANY),
        (reverse("evaluation:paraphrases", args=["nli", "round-1"]), "page", version.size),
        (reverse("leaderboard:board", args=["nli"]) + "?sort=-model", "page", models),
        (reverse("leaderboard:rounds", args=["nli"]), "page", models),
        # Each second example, and of these every third is wrong in both.
        (reverse("leaderboard:compare", args=["nli"]) + compared, "page", 8),
    ]


def make_trainings(task):
    options = {"weights": {"seed": 1.0}}
    TrainingRun.objects.bulk_create(TrainingRun(task=task, options=options) for _ in range(MANY))
    test = REPORT["tests"][0]
    report = REPORT | {"tests": [test | {"mended": MANY, "examples": test["examples"] * MANY}]}
    done = TrainingRun.objects.create(task=task, options=options, state="done", report=report)
    return [
        (reverse("evaluation:trainings", args=["nli"]), "page", MANY + 1),
        (reverse("evaluation:training", args=["nli", done.pk]), "page", MANY),
    ]


def make_examples(round, owner):
    """Examples that split their judges, of which the owner wrote most, with a model's answers."""
    authors = [owner] * MANY + [UserFactory() for _ in range(MANY - 1)]
    validators = [get_annotator(UserFactory()) for _ in range(MANY)]
    target = scripted_target(round, label="entailment")
    version = TargetVersion.objects.create(target=target, digest="d")
    for number, author in enumerate(authors):
        example = write(round, author, number)
        answer = {"target": target, "version": version, "output": {"label": "entailment"}}
        TargetOutput.objects.create(example=example, seconds=0.1, fooled=True, **answer)
        Validation.objects.bulk_create(
            Validation(example=example, validator=validator, author=example.annotator, label=label)
            for validator, label in zip(
                validators, ["neutral"] * 3 + ["entailment"] * 2, strict=True
            )
        )
    rederive(round=round, policy=Policy("plurality", of=5))
    # Otherwise than the votes, so that the second opinion differs.
    Consensus.objects.update(label="contradiction")
    examples = len(authors)
    return [
        (reverse("me:work"), "after", MANY),
        (reverse("own:annotators", args=["nli"]) + "?round=1", "authors-page", MANY),
        (reverse("own:annotators", args=["nli"]), "validators-page", MANY),
        (reverse("own:review", args=["nli"]) + "?kind=split", "after", examples),
        (reverse("own:review-examples", args=["nli"]) + "?round=1", "after", examples),
        (reverse("own:second-opinion", args=["nli", 1]), "page", examples),
        (reverse("own:second-opinion", args=["nli", 1]), "validators-page", MANY),
        (reverse("own:target-health", args=["nli", target.pk]), "after", examples),
    ]


def make_contexts(round):
    contexts = ContextFactory.create_batch(MANY, round=round)
    for state in (None, timezone.now()):
        reporter = get_annotator(UserFactory())
        Report.objects.bulk_create(
            Report(annotator=reporter, context=context, reason="other", resolved_at=state)
            for context in contexts
        )
    return [
        (reverse("own:contexts-all", args=["nli", 1]), "page", round.contexts.count()),
        (reverse("own:reports", args=["nli"]), "page", MANY),
        (reverse("own:reports", args=["nli"]) + "?state=resolved", "page", MANY),
    ]


def make_history(round, owner):
    """What was done in a task: assignments that ended, changes, policies."""
    Duty.objects.bulk_create(
        Duty(task=round.task, kind="write", amount=1, ended_at=timezone.now()) for _ in range(MANY)
    )
    policy = asdict(Policy("n-equal", 3))
    for action, target, data in (
        ("task.changed", round.task, {"diff": "+a"}),
        ("policy.changed", round, policy),
    ):
        LogEntry.objects.bulk_create(
            LogEntry(actor=owner, action=action, target=str(target), data=data) for _ in range(MANY)
        )
    entries = find_readable_entries(["nli"], ["nli"]).count()
    return [
        (reverse("own:duties", args=["nli"]), "page", MANY),
        (reverse("own:config", args=["nli"]), "page", MANY),
        (reverse("own:policy", args=["nli", 1]), "page", MANY),
        (reverse("own:log", args=["nli"]), "page", entries),
    ]


def make_arena(owner):
    task = battle_arena()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    compare(task, *(f"w{number} a{number} b{number} left" for number in range(MANY)))
    left, right = Contestant.objects.filter(task=task)[:2]
    over = {"release": "waiting", "ended_at": timezone.now(), "left": left, "right": right}
    for _ in range(MANY):
        voter = get_annotator(UserFactory())
        Battle.objects.create(task=task, voter=voter, winner="tie", **over)
    return [
        (reverse("leaderboard:arena", args=["duel"]), "page", 2 * MANY),
        (reverse("own:arena-voters", args=["duel"]), "page", MANY),
        (reverse("own:arena-conversations", args=["duel"]), "after", MANY),
    ]


def make_campaign(task):
    """A campaign of one person who found pairs of errors that are alike, in a round of its own."""
    round = RoundFactory(task=task, number=2, state="closed")
    ContextFactory(round=round)
    campaign = open_campaign(task, each=99, opened_at=timezone.now())
    take_part(campaign)
    author = Place.objects.get().annotator.user
    for number, example in enumerate(write_many(round, author, ["fooled"] * 2 * MANY)):
        Consensus.objects.create(
            example=example, round=round, state="decided", label="neutral", votes=3,
            still_needed=0, is_verified=True, is_validated_error=True, decided_at=timezone.now(),
        )  # fmt: skip
        TextKey.objects.create(example=example, round=round, key=number % MANY)
    campaign.pay_bonus = 100
    campaign.save()
    # Past catches of many people, for the preview of the bonus. Two more people have written.
    for _ in range(MANY - 2):
        (example,) = write_many(round, UserFactory(), ["fooled"])
        Consensus.objects.create(
            example=example, round=round, state="decided", label="neutral", votes=3,
            still_needed=0, is_verified=True, is_validated_error=True, decided_at=timezone.now(),
        )  # fmt: skip
    address = reverse("own-campaigns:coverage", args=[task.code, campaign.slug])
    preview = reverse("own-campaigns:bonus-preview", args=[task.code, campaign.slug])
    return [(address, "page", MANY), (preview, "page", MANY)]


def make_news(owner):
    """News of a community, and deliveries to a webhook."""
    group = Community.objects.create(slug="group", name="Group", is_listed=True)
    Post.objects.bulk_create(Post(community=group, title=str(n), text="x") for n in range(MANY))
    hook = Webhook.objects.create(user=owner, url="https://hooks.example/", events=[])
    now = timezone.now()
    Delivery.objects.bulk_create(
        Delivery(webhook=hook, event="e", key=str(n), data={}, happened_at=now, due_at=now)
        for n in range(MANY)
    )
    return [
        (reverse("communities:community", args=["group"]), "page", MANY),
        (reverse("webhooks:webhook", args=[hook.pk]), "page", MANY),
    ]


def make_catches(round):
    """A released round of which all examples are catches."""
    wall = RoundFactory(task=round.task, number=3, state="released")
    ContextFactory(round=wall)
    release = Dataset.objects.create(round=wall, version=1, state="done")
    for example in write_many(wall, UserFactory(), ["fooled"] * MANY):
        DatasetItem.objects.create(
            dataset=release, position=example.pk, uid=str(example.uuid), example=example,
            split="train",
        )  # fmt: skip
        Consensus.objects.create(
            example=example, round=wall, state="decided", label="neutral", votes=3,
            still_needed=0, is_verified=True, is_validated_error=True, decided_at=timezone.now(),
        )  # fmt: skip
    return [(reverse("catches:wall", args=["nli"]), "after", MANY)]


def make_studies(task):
    """Plans of studies."""
    for n in range(MANY):
        code = f"study-{n}"
        plan_text = PLAN.replace("study: helped", f"study: {code}")
        Study.objects.create(task=task, code=code, plan_text=plan_text)
    return [(reverse("own-studies:studies", args=[task.code]), "page", MANY)]


def make_items(task):
    """The properties of a set's items."""
    version = set_version(task, "items", rows=rows_of(MANY))
    fit = ItemFit.objects.create(version=version, model_count=20)
    ItemProperty.objects.bulk_create(
        ItemProperty(fit=fit, position=n, uid=f"u{n}", right_share=n / MANY) for n in range(MANY)
    )
    return [(reverse("evaluation:set-items", args=[task.code, "items", 1]), "page", MANY)]


def make_ruler(owner):
    """A task of its own with a ruler, on which half of the models are."""
    text = TaskFactory.build(code="nli").config_text
    task = RoundFactory(task=TaskFactory(code="ruled", config_text=text)).task
    TaskMember.objects.create(task=task, user=owner, role="owner")
    version = set_version(task, "round-1", rows=rows_of(16), may_leave=True)
    other = UserFactory()
    models = [
        accepted_model(task, other, f"r{number}", is_published=True) for number in range(2 * MANY)
    ]
    for model in models:
        answered(model, version, lambda n: n % 3)
    ruler = Ruler.objects.create(task=task, version=1, anchor_count=10, seed=1, state="done")
    RulerAnchor.objects.create(ruler=ruler, number=0, version=version, uid="u0")
    link = RulerLink.objects.create(
        ruler=ruler, version=version, model_count=MANY, value=0.7, item_error=0.1, half_width=0.1
    )
    shares = {"value": 0.7, "low": 0.6, "high": 0.8}
    for model in models[:MANY]:
        standing = RulerStanding.objects.create(
            ruler=ruler, submission=model, answers=b"", **shares
        )
        ExpectedScore.objects.create(standing=standing, link=link, **shares)
    return [
        (reverse("evaluation:ruler", args=["ruled"]), "page", MANY),
        (reverse("leaderboard:board", args=["ruled"]) + "?ruler=1", "page", MANY),
    ]


def make_adversaries(round, owner):
    """Adversaries, of which one has run several times and logged tries."""
    task = round.task
    rules = [
        make_adversary(round, owner, "rules", templates="neutral | A dog sat by the door.")
        for _ in range(MANY)
    ]
    runs = [
        AdversaryRun.objects.create(adversary=rules[0], round=round, number=n + 1, state="done")
        for n in range(MANY)
    ]
    AdversaryTry.objects.bulk_create(
        AdversaryTry(
            run=run, adversary=rules[0], round=round, digest=str(run.number), label="neutral",
            text="A dog sat by the door.", step="template", is_offered=True,
        )
        for run in runs
    )  # fmt: skip
    AdversaryImage.objects.bulk_create(
        AdversaryImage(adversary=rules[0], number=n + 1, state="done") for n in range(MANY)
    )
    address = reverse("own-adversaries:adversary", args=[task.code, rules[0].pk])
    return [
        (reverse("own-adversaries:adversaries", args=[task.code]), "page", MANY),
        (address, "page", MANY),
        (address, "runs-page", MANY),
        (f"{address}image/", "page", MANY),
    ]


def make_tasks(task, owner):
    """Further tasks of the owner, made last, because other lists add tasks as well."""
    for number in range(MANY):
        further = TaskFactory(code=f"further-{number}", config_text=task.config_text)
        TaskMember.objects.create(task=further, user=owner, role="owner")
    members = TaskMember.objects.filter(user=owner)
    return [(reverse("manage"), "page", members.count())]


def test_every_row_of_every_list_is_reached(client, nli, owner):
    """Add a list here when `with_pager - rendered` names its template."""
    client.force_login(owner)
    places = [
        *make_models(nli.task, owner),
        *make_trainings(nli.task),
        *make_examples(nli, owner),
        *make_contexts(nli),
        *make_adversaries(nli, owner),
        *make_studies(nli.task),
        *make_items(nli.task),
        *make_ruler(owner),
        *make_history(nli, owner),
        *make_arena(owner),
        *make_news(owner),
        *make_catches(nli),
        *make_tasks(nli.task, owner),
    ]
    rendered, missed = set(), []
    for url, parameter, number in [*places, *make_campaign(nli.task)]:
        rows, templates = walk(client, url, parameter)
        rendered |= templates
        if len(rows) != number:
            missed.append(f"{url} {parameter}: {len(rows)} rows of {number}")
    assert not missed, "\n".join(missed)
    files = [path for path in TEMPLATES.rglob("*.html") if PAGER in path.read_text()]
    with_pager = {str(path.relative_to(TEMPLATES)) for path in files}
    assert with_pager <= rendered, with_pager - rendered


@pytest.mark.parametrize(
    ("query", "beginning"),
    [
        ("?state=resolved&page=9", "?state=resolved"),
        ("?page=x", "?"),
        ("?page=0", "?"),
        ("?page=-1&state=open", "?state=open"),
        (f"?page={'9' * 30}", "?"),
        ("?page=%00", "?"),
        ("?state=asked&page=2", "?page=2"),
    ],
)
def test_a_page_or_a_filter_that_is_not_there_leads_to_the_beginning(
    client, nli, owner, query, beginning
):
    make_contexts(nli)
    client.force_login(owner)
    address = reverse("own:reports", args=["nli"])
    response = client.get(address + query)
    assert response.status_code == 404
    assert f'href="{address}{beginning}"' in unescape(response.text)
    assert 'id="no-such-rows"' in response.text


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", f"?after={'9' * 30}"])
def test_a_place_that_is_not_there_leads_to_the_beginning(client, owner, query):
    client.force_login(owner)
    response = client.get(reverse("me:work") + query)
    assert response.status_code == 404
    assert f'href="{reverse("me:work")}?"' in response.text


def test_filters_stay_on_further_pages_with_htmx_and_without(client, nli, owner):
    make_examples(nli, owner)
    client.force_login(owner)
    address = reverse("me:work") + "?task=nli&status=valid"
    page, part = client.get(address), client.get(address, **HTMX)
    assert "<html" not in part.text
    for response in (page, part):
        link = link_to(response, "after")
        assert {"task=nli", "status=valid"} < {*link.partition("?")[2].split("&")}
        assert f'hx-get="{link}"'.replace("&", "&amp;") in response.text
    chosen = client.get(link).context["filters"].chosen_values
    assert chosen == {"task": "nli", "status": "valid"}


def test_more_rows_take_one_query_more_and_no_further(client, nli, owner):
    address = reverse("own:log", args=["nli"])
    client.force_login(owner)

    def count(rows):
        LogEntry.objects.all().delete()
        entry = {"actor": owner, "action": "task.changed", "target": "nli", "data": {}}
        LogEntry.objects.bulk_create(LogEntry(**entry) for _ in range(rows))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    count(1)  # content types and the session are settled
    few = count(1)
    assert count(SIZE) == few
    assert count(SIZE + 1) == few + 1  # which counts
    assert count(20 * SIZE) == few + 1
