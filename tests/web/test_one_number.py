"""One number for one fact: pages that show the same fact show the same number."""

import re

import pytest
from django.utils import timezone

from annotation.models import Report
from core.accounts.services import get_annotator
from dynabench.notices.kinds.tasks import OpenReports, SubmittedModels
from leaderboard.jobs import renew_boards
from leaderboard.models import Board, Snapshot
from leaderboard.rounds.standing import find_model_standing
from tasks.models import TargetModel, TaskMember
from tests.support.boards import fill_board, measured, ranks_any
from tests.support.evaluations import accepted_model
from tests.support.factories import ContextFactory, RoundFactory, UserFactory
from tests.support.judging import write
from tests.support.submissions import submission_of
from validation.models import Comment, Consensus


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def as_owner(as_alice, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return as_alice


def scores_by_door(client, task):
    """The best model's name, rank and score, by the place where they are shown."""
    board = client.get(f"/t/{task.code}/leaderboard/").context["ranked"].rows[0]
    first_row, *_ = client.get(f"/t/{task.code}/").context["top"][0]
    embedded_row, *_ = client.get(f"/t/{task.code}/leaderboard/embed/").context["top"][0]
    (listed,) = client.get("/leaderboards/").context["boards"]
    api_row = client.get(f"/api/v1/tasks/{task.code}/leaderboard/").json()["rows"][0]
    submission = task.submissions.get(pk=board.model.id)
    standing = find_model_standing(submission, UserFactory())
    rows = {
        "board": board,
        "task": first_row,
        "embed": embedded_row,
        "model": standing.row,
    }
    facts = {}
    for door, row in rows.items():
        facts[door] = (row.model.name, row.open_rank, round(row.dynascore.value, 3))
    facts["index"] = (listed.leader.model, listed.leader.rank, round(listed.leader.value, 3))
    open_rank = f"{api_row['first']}–{api_row['last']}"
    if api_row["first"] == api_row["last"]:
        open_rank = str(api_row["first"])
    facts["api"] = (api_row["model"], open_rank, round(api_row["dynascore"]["value"], 3))
    return facts


def test_the_best_score_is_the_same_at_every_door(client, nli):
    task = nli.task
    ranks_any(task)
    models = fill_board(task)
    renew_boards()
    assert len(set(scores_by_door(client, task).values())) == 1
    # A snapshot was taken today, and the board goes on.
    assert Snapshot.objects.filter(task=task).exists()
    versions = [run.version for run in models[0].runs.filter(suite="plain")]
    best = accepted_model(task, name="Best", is_published=True)
    for version in versions:
        measured(best, version, 0.97)
    renew_boards()
    scores = scores_by_door(client, task)
    assert len(set(scores.values())) == 1
    assert scores["index"][0] == "Best"
    best.withdrawn_at = timezone.now()
    best.save(update_fields=["withdrawn_at"])
    renew_boards()
    scores = scores_by_door(client, task)
    assert len(set(scores.values())) == 1
    assert scores["index"][0] != "Best"


def test_a_board_that_stays_the_same_keeps_its_date(nli):
    ranks_any(nli.task)
    fill_board(nli.task)
    renew_boards()
    stored = Board.objects.get().first_models
    renew_boards()
    assert Board.objects.get().first_models == stored
    # Another description of the task moves no score.
    nli.task.config_text += "\n# A comment.\n"
    nli.task.save(update_fields=["config_text"])
    renew_boards()
    renewed = Board.objects.get().first_models
    assert renewed["state"] != stored["state"]
    assert renewed["changed_at"] == stored["changed_at"]


def row_of(page, code):
    return next(row for row in page.context["rows"] if row.task.code == code)


def test_models_of_the_week_are_counted_once(as_owner, bob, nli):
    task = nli.task
    submission_of(task, bob)
    # Two files of one model, a withdrawn model, and a model to fool that the site submits.
    for _number in range(2):
        accepted_model(task, bob, name="Files", kind="predictions")
    submission_of(task, bob, withdrawn_at=timezone.now())
    target = TargetModel.objects.create(task=task, name="a model to fool", adapter="scripted")
    submission_of(task, None, target=target)
    row = row_of(as_owner.get("/manage/"), "nli")
    assert row.models == 2
    assert SubmittedModels().count_by_task(timezone.now()) == {task.pk: 2}


def count_at_side(page, address):
    """The number at an entry of the list at the side; 0 without one."""
    found = re.search(rf'href="{address}"[^>]*>[^<]*<span class="count">(\d+)', page.text)
    return int(found[1]) if found else 0


def test_open_reports_are_the_same_everywhere(as_owner, bob, nli):
    example = write(nli, bob)
    for reason in ("broken", "harmful"):
        Report.objects.create(
            annotator=get_annotator(UserFactory()), context=example.context, reason=reason
        )
    Report.objects.create(
        annotator=get_annotator(bob),
        context=example.context,
        reason="broken",
        resolved_at=timezone.now(),
    )
    Comment.objects.create(
        example=example, author=get_annotator(bob), text="Rude.", reported_at=timezone.now()
    )
    dashboard = as_owner.get("/own/nli/")
    reports = as_owner.get("/own/nli/reports/")
    counts = {
        "all tasks": row_of(as_owner.get("/manage/"), "nli").reports,
        "needs you": dashboard.context["open_reports"],
        "side": count_at_side(dashboard, "/own/nli/reports/"),
        "page": len(reports.context["reports"]) + len(reports.context["comments"]),
        "notice": OpenReports().count_by_task(timezone.now())[nli.task.pk],
    }
    assert set(counts.values()) == {3}, counts


def test_undecided_examples_are_the_same_everywhere(as_owner, bob, nli):
    other = ContextFactory(round=RoundFactory(task=nli.task, number=7, state="closed")).round
    for number, round in enumerate((nli, nli, other)):
        example = write(round, bob, number)
        Consensus.objects.update_or_create(
            example=example,
            defaults={"round": round, "state": "no_consensus", "votes": 3, "still_needed": 0},
        )
    dashboard = as_owner.get("/own/nli/")
    counts = {
        "all tasks": row_of(as_owner.get("/manage/"), "nli").review,
        "needs you": dashboard.context["undecided"],
        "side": count_at_side(dashboard, "/own/nli/review/"),
        "page": len(as_owner.get("/own/nli/review/?kind=no-consensus").context["rows"]),
    }
    assert set(counts.values()) == {3}, counts


def test_tries_of_a_round_are_the_same_everywhere(as_owner, bob, nli):
    for number in range(4):
        write(nli, bob, number)
    example = write(nli, bob, 5)
    example.retracted_at = timezone.now()
    example.save(update_fields=["retracted_at"])
    data = as_owner.get("/t/nli/data/")
    card = next(card for card in as_owner.get("/").context["cards"] if card.task.code == "nli")
    round_card = as_owner.get("/own/nli/rounds/").context["cards"][0]
    counts = {
        "home": card.numbers["collected"],
        "task": as_owner.get("/t/nli/").context["newest"][1].numbers["collected"],
        "data": data.context["numbered"][0][1]["collected"],
        "dashboard": as_owner.get("/own/nli/").context["now"].parts.tries,
        "all tasks": row_of(as_owner.get("/manage/"), "nli").tries,
        "rounds": round_card.numbers["collected"],
    }
    assert set(counts.values()) == {4}, counts
