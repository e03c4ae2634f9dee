"""Groups of tasks: their page, who finds which tasks on it, and what leads there."""

import pytest
from django.utils import timezone

from leaderboard.models import Snapshot
from tasks.models import TaskGroup, TaskMember
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.query_counts import check, count

URL = "/g/dadc/"


@pytest.fixture
def group(db):
    """A group of an open task and one that only its members see."""
    made = TaskGroup.objects.create(
        slug="dadc", name="DADC", summary="Adversarial data.", description="We *meet* weekly."
    )
    made.tasks.add(
        TaskFactory(code="nli", name="Open task"),
        TaskFactory(code="qa", name="Secret task", is_visible=False),
    )
    return made


def snapshot(task, number, *names):
    """The board as it was, first the best."""
    rows = [
        {"rank": rank, "model": name, "dynascore": {"value": 71.25 - place}}
        for place, (rank, name) in enumerate(names)
    ]
    Snapshot.objects.create(
        task=task, number=number, table={"sets": [], "rows": rows}, sha256="a" * 64
    )


def test_a_group_has_its_page(client, group):
    page = client.get(URL).text
    assert "<title>DADC · Dynabench</title>" in page
    assert "Adversarial data." in page
    assert "We <em>meet</em> weekly." in page
    assert 'href="/t/nli/"' in page


@pytest.mark.parametrize(
    ("who", "sees"),
    [("nobody", False), ("stranger", False), ("viewer", True), ("superuser", True)],
)
def test_tasks_that_are_not_public_are_for_those_who_may_see_them(client, group, who, sees):
    secret = group.tasks.get(code="qa")
    other = TaskGroup.objects.create(slug="hidden", name="Hidden circle")
    other.tasks.add(secret)
    if who != "nobody":
        user = UserFactory(is_superuser=who == "superuser")
        if who == "viewer":
            TaskMember.objects.create(task=secret, user=user, role="viewer")
        client.force_login(user)
    assert ("Secret task" in client.get(URL).text) == sees
    assert (client.get("/g/hidden/").status_code == 200) == sees
    home = client.get("/").text
    assert 'href="/g/dadc/"' in home
    assert ("Hidden circle" in home) == sees
    assert client.get("/t/qa/").status_code == (200 if sees else 404)


def test_a_task_leads_to_its_groups(client, group):
    other = TaskFactory(code="sentiment")
    assert 'href="/g/dadc/">DADC</a>' in client.get("/t/nli/").text
    assert "Part of" not in client.get(f"/t/{other.code}/").text


def test_no_group_no_list(client, db):
    TaskFactory(code="sentiment")
    assert "Groups of tasks" not in client.get("/").text
    assert client.get(URL).status_code == 404


def test_the_top_of_the_last_board_is_shown(client, group):
    task = group.tasks.get(code="nli")
    snapshot(task, 1, ("1", "Old"))
    snapshot(task, 2, ("1=", "Ada"), ("1=", "Ben"), ("3", "Cy"), ("4", "Dot"), ("", "Not run"))
    page = client.get(URL).text
    assert "1= Ada, Dynascore 71.2" in page or "1= Ada, Dynascore 71.3" in page
    assert "3 Cy, Dynascore 69.2" in page or "3 Cy, Dynascore 69.3" in page
    assert timezone.now().strftime("%Y") in page
    assert "Old" not in page
    assert "Dot" not in page


def test_models_that_are_not_run_are_not_at_the_top(client, group):
    snapshot(group.tasks.get(code="nli"), 1, ("1", "Ada"), ("", "Lacking"))
    page = client.get(URL).text
    assert "Ada" in page
    assert "Lacking" not in page


def test_query_count_of_a_group(as_alice, group):
    for task in group.tasks.all():
        RoundFactory(task=task)
        snapshot(task, 1, ("1", "Ada"))
    few, text = count(as_alice, URL), group.tasks.first().config_text
    for number in range(5):
        task = TaskFactory(code=f"more-{number}", config_text=text)
        RoundFactory(task=task)
        snapshot(task, 1, ("1", "Ada"))
        group.tasks.add(task)
    assert count(as_alice, URL) == few
    check("group", few)


def test_groups_are_kept_in_the_admin_by_superusers_alone(client, group):
    changed = f"/admin/tasks/taskgroup/{group.pk}/change/"
    client.force_login(UserFactory())
    assert client.get(changed, follow=True).status_code == 403
    client.force_login(UserFactory(is_superuser=True))
    form = {"slug": "dadc", "name": "DADC 2", "summary": "", "description": "", "tasks": []}
    assert client.post(changed, form).status_code == 302
    group.refresh_from_db()
    assert group.name == "DADC 2"
