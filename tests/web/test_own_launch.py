"""What a task lacks before its first round opens, and the owner pages that mend it."""

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.context_picking.services import assign
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from tasks.contexts import uploads
from tasks.models import Context, ContextBatch, Round, TaskMember
from tests.support.factories import RoundFactory, TaskFactory, scripted_target

URL = "/own/nli/"
CONTEXTS = "/own/nli/rounds/1/contexts/"
PROB = {"entailment": 0.1, "neutral": 0.8, "contradiction": 0.1}


@pytest.fixture(autouse=True)
def _uploads_of_this_test(monkeypatch, tmp_path):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")


@pytest.fixture
def draft(alice):
    """Alice's private task with a planned round."""
    round = RoundFactory(task=TaskFactory(code="nli", is_visible=False), state="draft")
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    return round


def upload(client, data, name="rows.csv"):
    return client.post(CONTEXTS, {"file": SimpleUploadedFile(name, data)})


def links(page):
    return [line.url for line in page.context["launch"]]


def test_the_list_leads_to_the_pages_that_mend_it(as_alice, draft):
    page = as_alice.get(URL)
    assert links(page) == [CONTEXTS, "/own/nli/targets/", "/own/nli/access/#members"]
    assert "/rounds/1/open/" not in page.text
    for url in links(page):
        assert f'href="{url}"' in page.text
        assert as_alice.get(url).status_code == 200, url


def test_a_file_is_stored_only_after_its_preview_and_the_round_opens(as_alice, draft, alice, bob):
    scripted_target(draft, label="neutral", prob=PROB)
    rows = b"premise,tag\nThe shop opens at nine.,daily\n,none\nThe shop opens at nine.,again\n"
    page = upload(as_alice, rows)
    assert page.status_code == 200
    assert "line 3: " in page.text
    assert "line 4: " in page.text
    assert not Context.objects.exists()
    ticket = page.context["ticket"]
    stored = as_alice.post(f"{CONTEXTS}store/", {"ticket": ticket})
    assert stored.url == URL
    told = [one.level_tag for one in get_messages(stored.wsgi_request)]
    assert told == ["success", "warning"]  # a line was left out
    assert [*Context.objects.values_list("fields__premise", "tag")] == [
        ("The shop opens at nine.", "daily")
    ]
    assert LogEntry.objects.get(action="contexts.imported").actor == alice
    again = as_alice.post(f"{CONTEXTS}store/", {"ticket": ticket})
    assert again.url == CONTEXTS  # the upload is gone
    assert as_alice.post("/own/nli/access/", {"is_visible": "on"}).url == "/own/nli/access/"
    draft.task.refresh_from_db()
    assert (draft.task.is_visible, draft.task.allow_try_out) == (True, False)
    page = as_alice.get(URL)
    assert links(page) == []
    assert 'action="/own/nli/rounds/1/open/"' in page.text
    as_alice.post(f"{URL}rounds/1/open/")
    assert Round.objects.get().state == "open"
    assert "launch" not in as_alice.get(URL).context


@pytest.mark.parametrize(
    ("name", "data", "new"),
    [
        ("a.tsv", b"premise\ttag\nThe shop opens at nine.\tdaily\n", 1),
        ("a.txt", b"The shop opens at nine.\n\nThe shop closes at ten.\r\n", 2),
        ("a.jsonl", b'{"premise": "The shop opens at nine."}\n', 1),
    ],
)
def test_formats(as_alice, draft, name, data, new):
    page = upload(as_alice, data, name)
    assert page.status_code == 200
    assert page.context["summary"].new_count == new


def test_columns_of_other_names_are_matched(as_alice, draft):
    """By a guess at first, then as the person says; what is stored is what was shown."""
    page = upload(as_alice, b"Premise,topic\nThe shop opens.,trade\n")
    assert page.context["summary"].new_count == 1
    assert page.context["match"].initial == {"column-premise": "Premise"}
    sent = {"ticket": page.context["ticket"], "column-premise": "Premise", "column-tag": "topic"}
    page = as_alice.post(f"{CONTEXTS}match/", sent)
    assert page.context["summary"].rows[0].values["tag"] == "trade"
    assert 'name="column-tag" value="topic"' in page.text
    assert not Context.objects.exists()
    as_alice.post(f"{CONTEXTS}store/", sent)
    context = Context.objects.get()
    assert (context.fields, context.tag) == ({"premise": "The shop opens."}, "trade")


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        ({"column-premise": ""}, "column-premise"),
        ({"column-premise": "no such"}, "column-premise"),
        ({"column-premise": "b", "column-tag": "b"}, "column-premise"),
    ],
)
def test_a_wrong_choice_of_columns_is_said_at_its_field(as_alice, draft, chosen, field):
    ticket = upload(as_alice, b"a,b\nx,y\n").context["ticket"]
    page = as_alice.post(f"{CONTEXTS}match/", {"ticket": ticket, **chosen})
    assert page.status_code == 422
    assert [*page.context["match"].errors] == [field]
    assert "contexts/store/" not in page.text


def test_an_import_is_undone_while_nobody_was_given_it(as_alice, draft, alice):
    ticket = upload(as_alice, b"premise\nThe shop opens at nine.\n").context["ticket"]
    for is_given in (False, True):
        if is_given:
            ticket = upload(as_alice, b"premise\nIt closes at ten.\n").context["ticket"]
        as_alice.post(f"{CONTEXTS}store/", {"ticket": ticket})
        batch = ContextBatch.objects.get()
        if is_given:
            Round.objects.update(state="open")
            assign(annotator=get_annotator(alice), round=draft)
        undo = f"{CONTEXTS}{batch.pk}/undo/"
        assert f'action="{undo}"' in as_alice.get(CONTEXTS).text
        assert as_alice.post(undo).url == CONTEXTS
        assert Context.objects.exists() == is_given
    TaskMember.objects.update(role="viewer")
    assert as_alice.post(undo).status_code == 403


def test_an_upload_that_is_gone_is_chosen_again(as_alice, draft):
    assert as_alice.post(f"{CONTEXTS}match/", {"ticket": "x"}).url == CONTEXTS


@pytest.mark.parametrize(
    ("name", "data"), [("a.exe", b"x"), ("a.csv", b""), ("a.zip", b"no archive")]
)
def test_a_file_that_nothing_can_read_is_refused_at_its_field(as_alice, draft, name, data):
    page = upload(as_alice, data, name)
    assert page.status_code == 422
    assert [*page.context["form"].errors] == ["file"]


def test_a_closed_round_takes_no_contexts(as_alice, draft):
    Round.objects.update(state="closed")
    assert as_alice.get(CONTEXTS).status_code == 200
    assert upload(as_alice, b"premise\nx\n").status_code == 422


def test_who_may_come_in(as_alice, alice, draft):
    TaskMember.objects.update(role="viewer")
    assert "launch" not in as_alice.get(URL).context
    for path in (CONTEXTS, "/own/nli/access/"):
        assert as_alice.get(path).status_code == 403
        assert as_alice.post(path, {"is_visible": "on"}).status_code == 403
    draft.task.refresh_from_db()
    assert not draft.task.is_visible


def test_a_ticket_of_somebody_else_brings_nothing(as_alice, client, bob, draft):
    TaskMember.objects.create(task=draft.task, user=bob, role="editor")
    ticket = upload(as_alice, b"premise\nThe shop opens at nine.\n").context["ticket"]
    client.force_login(bob)
    assert client.post(f"{CONTEXTS}store/", {"ticket": ticket}).url == CONTEXTS
    assert not Context.objects.exists()


STEPS = (  # a role, the state of round 1, of round 2, and where round 1 leads, then round 2
    ("owner", "open", None, "/own/nli/rounds/1/close/", None),
    ("owner", "closed", None, "/own/nli/rounds/1/release/", None),
    ("owner", "released", None, "/own/nli/rounds/new/", None),
    ("owner", "released", "draft", None, "/own/nli/rounds/2/open/"),
    ("owner", "closed", "open", "/own/nli/rounds/1/release/", "/own/nli/rounds/2/close/"),
    ("owner", "draft", None, None, None),
    ("editor", "closed", None, None, None),
    ("editor", "open", None, "/own/nli/rounds/1/close/", None),
    ("viewer", "open", None, None, None),
    ("viewer", "released", None, None, None),
)


def test_the_dashboard_leads_on_from_every_state(as_alice, draft):
    for role, first, second, *wanted in STEPS:
        Round.objects.filter(number=2).delete()
        Round.objects.update(state=first)
        TaskMember.objects.update(role=role)
        if second:
            RoundFactory(task=draft.task, number=2, state=second)
        pages = [as_alice.get(f"{URL}?round={number}") for number in (1, 2)[: 1 + bool(second)]]
        steps = [page.context["step"] for page in pages]
        assert [step and step.url for step in steps] == wanted[: len(pages)], (role, first, second)
        for page, step in zip(pages, steps, strict=True):
            if step:
                assert f'href="{step.url}"' in page.text
                assert as_alice.get(step.url).status_code == 200, step.url


def test_the_next_round_is_proposed_as_the_last_one_was(as_alice, draft):
    form = as_alice.get("/own/nli/rounds/new/").context["form"]
    assert form["contexts_of"].initial is None  # the last one has nothing to copy
    target = scripted_target(draft, label="neutral", prob=PROB)
    draft.contexts.create(fields={"premise": "A text."}, digest="1")
    Round.objects.update(rule="all", pay_example=20, show_target_name=False)
    form = as_alice.get("/own/nli/rounds/new/").context["form"]
    names = ("rule", "pay_example", "show_target_name", "targets", "contexts_of")
    assert [form[name].initial for name in names] == ["all", "0.20", False, [target.name], 1]


def test_a_new_target_answers_where_a_planned_round_has_none(as_alice, draft):
    fields = {
        "adapter": "http",
        "url": "https://models.example/predict",
        "options": "{}",
        "serving": "{}",
    }
    for name in ("first", "second"):
        page = as_alice.post("/own/nli/targets/new/", {"name": name, **fields})
        assert page.status_code == 302, page.context["form"].errors
    assert [*draft.targets.values_list("name", flat=True)] == ["first"]
    assert LogEntry.objects.filter(action="round.changed").count() == 1
    one, other = draft.task.targets.order_by("pk")
    for target, uses, planned in ((one, [draft], None), (other, [], draft)):
        page = as_alice.get(f"/own/nli/targets/{target.pk}/health/")
        assert (page.context["uses"], page.context["planned"]) == (uses, planned)


def test_the_list_says_how_many_judges_are_needed(as_alice, draft):
    votes = draft.task.config.validation.votes.needed
    (words,) = (line.words for line in as_alice.get(URL).context["launch"] if "access" in line.url)
    assert str(votes) in words
    assert "0" in words
