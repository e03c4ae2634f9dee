"""The owners' pages that take rows to be judged, and data sets of the hub."""

import csv
import io
import json

import pytest

from annotation.models import Example
from core.accounts.models import LogEntry, confirm_address
from core.web.throttles import REQUESTS_PER_HOUR
from tasks.contexts import uploads
from tasks.models import ContextBatch, TaskMember
from tests.support.factories import UserFactory
from tests.support.hub import COMMIT, dataset_hub
from tests.support.judging import judge
from tests.support.writing import signed_in
from validation.models import QueueItem
from validation.statistics.report import build_task_report

ROWS, CONTEXTS = "/own/nli/rounds/1/rows/", "/own/nli/rounds/1/contexts/"
PAIRS = [
    {"premise": f"Cat {n} sleeps.", "words": "It rests.", "gold": "neutral", "uid": f"u{n}"}
    for n in range(3)
]  # fmt: skip
README = b"---\nlicense: mit\n---\n```\n@misc{pairs}\n```\n"
FILES = {"README.md": README, "train.jsonl": "\n".join(map(json.dumps, PAIRS)).encode()}
HUB = {"dataset": "org/pairs", "rows": "2"}


@pytest.fixture
def draft(alice, nli, settings, tmp_path, monkeypatch):
    """A planned round of Alice's task without contexts."""
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")
    confirm_address(alice)
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    nli.contexts.all().delete()
    nli.state = "draft"
    nli.save()
    return nli


def table(rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, [*rows[0]])
    writer.writeheader()
    writer.writerows(rows)
    return io.BytesIO(out.getvalue().encode())


def sent(page, **columns):
    """What the form of a preview sends; columns: by field."""
    return {"ticket": page.context["ticket"], **{f"column-{k}": v for k, v in columns.items()}}


def test_rows_of_a_file_are_matched_stored_and_judged(as_alice, alice, draft):
    assert as_alice.get(ROWS).status_code == 200
    file = table(PAIRS)
    file.name = "rows.csv"
    page = as_alice.post(ROWS, {"file": file})
    assert page.status_code == 200
    assert page.context["summary"].error_count == 3  # no column fills `hypothesis` by its name
    columns = {"premise": "premise", "hypothesis": "words", "label": "gold", "uid": "uid"}
    columns |= {"prediction": "gold"}
    assert as_alice.post(f"{ROWS}match/", sent(page, **columns)).status_code == 422
    del columns["prediction"]
    page = as_alice.post(f"{ROWS}match/", sent(page, **columns))
    assert page.context["summary"].new_count == 3
    assert not Example.objects.exists()
    for _ in range(2):
        assert as_alice.post(f"{ROWS}store/", sent(page, **columns)).status_code == 302
        assert LogEntry.objects.filter(action="examples.imported").count() == 1
        page = as_alice.post(ROWS, {"file": (file.seek(0), file)[1]})
    first = Example.objects.order_by("pk").first()
    assert (first.uid, first.outcome) == ("u0", "no_model")
    assert first.inputs == {"hypothesis": "It rests.", "label": "neutral"}
    assert first.context.fields == {"premise": "Cat 0 sleeps."}
    assert LogEntry.objects.get(action="examples.imported").actor == alice
    draft.refresh_from_db()
    assert draft.state == "closed"
    assert QueueItem.objects.count() == 3
    person = UserFactory()
    confirm_address(person)
    TaskMember.objects.create(task=draft.task, user=person, role="judge")
    assert judge(signed_in(person), "label:neutral", "/t/nli/judge/").status_code == 200
    [told] = build_task_report([draft], code="nli")["rounds"]
    assert (told["collected"], told["judged"], told["votes"], told["validators"]) == (3, 1, 1, 1)


def test_a_hubs_rows_are_judged_with_terms_and_a_models_answer(as_alice, draft, settings):
    rows = [
        {"premise": "A cat.", "hypothesis": "It rests.", "prediction": "neutral", "model": "m"},
        {"premise": "A cat."},
    ]
    files = {**FILES, "train.jsonl": "\n".join(map(json.dumps, rows)).encode()}
    with dataset_hub(files) as (settings.HUB_ENDPOINT, _):
        page = as_alice.post(f"{ROWS}hub/", HUB)
    assert (page.context["summary"].new_count, page.context["summary"].error_count) == (1, 1)
    told = {field: field for field in rows[0]}
    assert as_alice.post(f"{ROWS}store/", sent(page, **told)).status_code == 302
    example = Example.objects.get()
    assert (example.outcome, example.target_outputs.get().output) == (
        "unknown",
        {"label": "neutral"},
    )
    batch = ContextBatch.objects.get()
    assert (batch.license, batch.citation) == ("mit", "@misc{pairs}")
    assert batch.origin.endswith(f"/datasets/org/pairs/tree/{COMMIT}")


def test_a_hubs_rows_become_contexts(as_alice, draft, settings):
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _):
        page = as_alice.post(f"{CONTEXTS}hub/", HUB)
    assert page.context["match"].initial["column-premise"] == "premise"
    assert page.context["summary"].new_count == 2
    assert "mit" in page.text
    assert as_alice.post(f"{CONTEXTS}store/", sent(page, premise="premise")).status_code == 302
    assert draft.contexts.count() == 2
    assert ContextBatch.objects.get().citation == "@misc{pairs}"
    assert COMMIT in as_alice.get(CONTEXTS).text


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"dataset": "org/other"}, "dataset"),
        ({"dataset": "http://10.0.0.1/datasets/a/b"}, "dataset"),
        ({"split": "dev"}, "dataset"),
        ({"rows": "0"}, "rows"),
    ],
)
def test_what_the_hub_does_not_give_is_said_and_the_rest_stays(
    typed, field, as_alice, draft, settings
):
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _):
        page = as_alice.post(f"{ROWS}hub/", HUB | typed)
    assert page.status_code == 422
    assert [*page.context["hub"].errors] == [field]
    assert all(f'value="{value}"' in page.text for value in (HUB | typed).values())


def test_what_a_round_does_not_take(as_alice, bob, draft, monkeypatch):
    monkeypatch.setitem(REQUESTS_PER_HOUR, "hub", 0)
    assert [*as_alice.post(f"{ROWS}hub/", HUB).context["hub"].errors] == ["dataset"]
    archive = io.BytesIO(b"PK")
    archive.name = "rows.zip"
    assert [*as_alice.post(ROWS, {"file": archive}).context["form"].errors] == ["file"]
    assert as_alice.post(f"{ROWS}store/", {"ticket": "x"}).status_code == 302
    for url in (ROWS, f"{ROWS}hub/", f"{ROWS}store/"):
        assert signed_in(bob).post(url, HUB).status_code in (403, 404)
    draft.state = "released"
    draft.save()
    assert 'type="file"' not in as_alice.get(ROWS).text
    assert not Example.objects.exists()
