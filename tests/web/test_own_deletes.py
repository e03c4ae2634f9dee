"""What the admin does is done on owner pages too: retire, delete, and a generator."""

import pytest

from core.accounts.models import LogEntry
from tasks.models import Context, Generator, Round, TargetModel, TaskMember
from tasks.targets.connect import get_secret
from tests.support.factories import ContextFactory, RoundFactory, scripted_target

ALL = "/own/nli/rounds/1/contexts/all/"


@pytest.fixture
def as_(as_alice, alice, nli):
    """Alice's client in a role."""

    def client(role):
        TaskMember.objects.update_or_create(task=nli.task, user=alice, defaults={"role": role})
        return as_alice

    return client


def test_contexts_are_retired_and_given_back(as_, nli):
    first, *others = nli.contexts.order_by("pk")
    elsewhere = ContextFactory(round=RoundFactory(task=nli.task, number=2, state="draft"))
    ticked = {"context": [first.pk, elsewhere.pk, "x", "9" * 30, "9" * 5000]}
    assert as_("viewer").get(ALL).status_code == 200
    assert 'type="checkbox"' not in as_("viewer").get(ALL).text
    assert as_("reviewer").post(ALL, {**ticked, "retire": "1"}).status_code == 403
    editor = as_("editor")
    editor.post(ALL, {"retire": "1"})
    editor.post(ALL, {**ticked, "retire": "1"})
    assert list(Context.objects.filter(is_retired=True)) == [first]
    assert LogEntry.objects.get(action="contexts.retired").task == "nli"
    page = editor.get(f"{ALL}?context={others[0].pk}").context["rows"]
    assert [row for row, _ in page] == [others[0]]
    assert editor.get(f"{ALL}?context={'9' * 5000}").status_code == 404
    editor.post(ALL, ticked)
    assert not Context.objects.filter(is_retired=True).exists()


def test_an_owner_deletes_a_round_in_which_nobody_wrote(as_, nli):
    RoundFactory(task=nli.task, number=2, state="draft")
    owner, url = as_("owner"), "/own/nli/rounds/2/delete/"
    assert url in owner.get("/own/nli/rounds/").text
    assert as_("editor").post(url).status_code == 403
    owner = as_("owner")
    for number in (1, 2):  # the first is open
        page = f"/own/nli/rounds/{number}/delete/"
        asked = owner.get(page)
        assert asked.status_code == (409 if number == 1 else 200)
        assert ('id="delete-round"' in asked.text) == (number == 2)
        owner.post(page)
    assert [round.number for round in Round.objects.all()] == [1]
    assert LogEntry.objects.get(action="round.deleted").target == "nli round 2"


def test_an_editor_deletes_a_target_that_nothing_uses(as_, nli):
    used = scripted_target(nli, label="neutral")
    free = TargetModel.objects.create(task=nli.task, name="free", adapter="scripted")
    editor = as_("editor")
    assert f"/own/nli/targets/{free.pk}/delete/" in editor.get("/own/nli/targets/").text
    for target in (used, free):
        url = f"/own/nli/targets/{target.pk}/delete/"
        assert as_("reviewer").post(url).status_code == 403
        editor = as_("editor")
        assert editor.get(url).status_code == 200
        editor.post(url)
    assert list(TargetModel.objects.all()) == [used]


def test_an_editor_gives_the_task_a_generator_and_takes_it_away(as_, nli):
    form = {"name": "muse", "adapter": "scripted", "url": "https://muse.test/v1", "options": "{}"}
    url = "/own/nli/generator/"
    assert as_("reviewer").get(url).status_code == 403
    editor = as_("editor")
    assert editor.post(url, {**form, "url": ""}).status_code == 422
    editor.post(url, {**form, "secret_env": "TARGET_OTHER_SECRET"})
    made = Generator.objects.get()
    assert (made.name, made.secret_env) == ("muse", "")
    editor.post(url, {**form, "secret": "s3cret"})
    editor.post(url, form)
    assert get_secret(Generator.objects.get()) == "s3cret"
    page = editor.get(url)
    assert "s3cret" not in page.text
    # Every field of the form is on the page, so that the key can be changed and deleted there.
    assert all(f'name="{one.html_name}"' in page.text for one in page.context["form"])
    editor.post(url, {**form, "name": "other", "url": "https://new.test/v1"})
    made.refresh_from_db()
    assert get_secret(made) is None
    assert (made.name, made.url) == ("muse", "https://new.test/v1")
    editor.post(url, {"remove": "1"})
    assert not Generator.objects.exists()
