"""Tasks in which rows are judged: their owner area, right answers by model and by slice."""

# ruff: noqa: F811  (fixtures are named where they are used)

import io
import json

import pytest

from tasks.contexts import uploads
from tasks.making.services import make_task
from tasks.making.templates import load_templates
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import answered, decide_many, write
from tests.support.new_tasks import ada, as_ada  # noqa: F401
from tests.support.writing import signed_in
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.statistics.answers import count_right_answers

CASES = [  # model, tag, what people say
    *[("calc-a", "sums", "correct")] * 3,
    ("calc-a", "roots", "incorrect"),
    ("calc-a", "", "flagged"),
    *[("calc-b", "roots", "incorrect")] * 2,
    ("calc-b", "sums", "correct"),
    ("calc-b", "sums", None),
]


@pytest.fixture
def task(ada, settings, tmp_path, monkeypatch):
    settings.NEW_TASKS = "everybody"
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")
    return make_task(creator=ada, code="sums", name="Sums", source=load_templates()["judging"])


@pytest.fixture
def judged(task, ada, as_ada):
    rows = [
        {"question": f"Case {n}?", "prediction": f"So {n}.", "model": model, "tag": tag}
        for n, (model, tag, _said) in enumerate(CASES)
    ]
    file = io.BytesIO("\n".join(map(json.dumps, rows)).encode())
    file.name = "rows.jsonl"
    page = as_ada.post("/own/sums/rounds/1/rows/", {"file": file})
    as_ada.post("/own/sums/rounds/1/rows/store/", {"ticket": page.context["ticket"]})
    for number, (_model, _tag, said) in enumerate(CASES):
        example = task.rounds.get().examples.get(context__fields__question=f"Case {number}?")
        if said:
            override_consensus(example=example, owner=ada, choice=Vote(verdict=said), reason="So.")
    return task


def share(rate):
    return (round(rate.value * rate.n), rate.n, rate.low < rate.value < rate.high or rate.n < 3)


def test_right_answers_by_model_and_by_tag(judged, as_ada):
    found = as_ada.get("/own/sums/results/").context["found"]
    assert {model: share(rate) for model, rate in found.by_model.items()} == {
        "calc-a": (3, 4, True),
        "calc-b": (1, 3, True),
    }
    by_slice = {
        tag: {model: share(rate)[:2] for model, rate in models.items()}
        for tag, models in found.by_slice.items()
    }
    assert by_slice == {
        "roots": {"calc-a": (0, 1), "calc-b": (0, 2)},
        "sums": {"calc-a": (3, 3), "calc-b": (1, 1)},
    }
    assert as_ada.get("/own/sums/").context["found"] == found
    assert as_ada.get("/own/sums/results/?round=1").context["found"] == found
    assert count_right_answers([]).by_model == {}
    outsider = UserFactory()
    assert signed_in(outsider).get("/own/sums/results/").status_code == 404
    TaskMember.objects.create(task=judged, user=outsider, role="judge")
    assert signed_in(outsider).get("/own/sums/results/").status_code == 403


def test_where_people_choose_labels_an_answer_is_right_that_says_the_decided_one(nli, ada):
    examples = [write(nli, UserFactory(), number, label="entailment") for number in range(3)]
    for example in examples:
        answered(example, label="neutral")
    decide_many(examples, ["neutral", "entailment", "neutral"], UserFactory(is_superuser=True))
    found = count_right_answers([nli])
    assert [share(rate)[:2] for rate in found.by_model.values()] == [(1, 1), (0, 1), (1, 1)]


def test_the_first_step_of_a_judging_task_is_the_import_of_its_rows(task, as_ada):
    page = as_ada.get("/own/sums/")
    first = page.context["launch"][0]
    assert (first.url, first.is_needed) == ("/own/sums/rounds/1/rows/", True)
    urls = {one.url for one in page.context["launch"]}
    assert not urls & {"/own/sums/targets/", "/own/sums/rounds/1/contexts/"}
    for tab in ("targets", "trainings"):
        assert f'href="/own/sums/{tab}/"' not in page.text
    assert 'href="/own/sums/results/"' in page.text


def test_pages_of_a_judging_task_say_nothing_of_writing(judged, as_ada):
    pages = {path: as_ada.get(path) for path in ("/own/sums/rounds/", "/t/sums/", "/t/sums/judge/")}
    for path, page in pages.items():
        assert page.status_code == 200
        for link in ("/own/sums/rounds/1/contexts/", "/t/sums/write/", "#vmer"):
            assert f'{link}"' not in page.text, (path, link)
    assert [card.numbers["decided"] for card in pages["/own/sums/rounds/"].context["cards"]] == [8]


def test_where_a_target_is_chosen_it_is_said_that_none_can_be_trained(nli, ada, as_ada):
    TaskMember.objects.create(task=nli.task, user=ada, role="owner")
    page = "/own/nli/targets/choose/"
    assert as_ada.get(page).context["untrainable"] == ""
    field = "\n  - {name: tongue, type: multiclass, labels: [en, de], required: false}"
    nli.task.config_text = nli.task.config_text.replace("\ncontext:", f"\ncontext:{field}")
    nli.task.save()
    told = as_ada.get(page)
    assert told.context["untrainable"]
    assert "/labelled/" not in told.text
