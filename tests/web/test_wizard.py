"""A task put together step by step: what is stored, what is lost (nothing), what is refused."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest
from django.test import Client

from dynabench.manage.wizard.field_forms import (
    COLOUR_WORDS,
    KEY_FIELDS,
    ROW_KEYS,
    FieldForm,
    build_label_formset,
    write_labels,
)
from dynabench.manage.wizard.forms import FORMS
from dynabench.manage.wizard.urls import urlpatterns
from tasks.config.components import COLOURS, FIELD_TYPES
from tasks.config.loading import load_config
from tasks.config_changes import hash_text
from tasks.making.draft_services import build_draft_text
from tasks.making.outline import (
    SECTION_PATHS,
    complete_data,
    find_hidden_paths,
    format_data,
    get_fields,
    get_value,
    parse_data,
    repeats_input,
)
from tasks.making.templates import load_templates
from tasks.models import Task, TaskDraft, TaskMember, TaskProposal
from tests.support.factories import UserFactory
from tests.support.new_tasks import ada, as_ada  # noqa: F401
from tests.support.writing import signed_in
from tests.web.conftest import HTMX

MADE = """\
version: 1
name: Ferries
goal:
  text: Write a review that is {mood}
  field: mood
input:
  - name: review
    type: long_text
    label: Your review
    max_length: 300
  - name: mood
    type: multiclass
    label: Mood
    labels:
      - glad
      - value: sad
        display: rather sad
    colours:
      glad: teal
      sad: orange
output:
  - mood
verdict:
  type: exact_match
  fields:
    - mood
metrics:
  main: accuracy
"""


@pytest.fixture(autouse=True)
def _everybody(settings):
    settings.NEW_TASKS = "everybody"


NO_FORMS = {f"<int:pk>/{end}/" for end in ("yaml", "preview", "delete", "fields/change")}


class Steps:
    """The pages of one draft."""

    def __init__(self, client):
        self.client = client
        self.draft = TaskDraft.objects.get()
        self.url = f"/new/draft/{self.draft.pk}/"

    def get(self, path="goal/", **more):
        return self.client.get(self.url + path, **more)

    def post(self, path, **sent):
        return self.client.post(self.url + path, sent)

    @property
    def text(self):
        self.draft.refresh_from_db()
        return build_draft_text(self.draft)


def begin(client):
    response = client.post("/new/draft/")
    steps = Steps(client)
    assert response.url == f"{steps.url}goal/"
    return steps


def labels(*rows):
    sent = {"labels-TOTAL_FORMS": len(rows), "labels-INITIAL_FORMS": 0}
    for n, row in enumerate(rows):
        sent |= {f"labels-{n}-{key}": value for key, value in row.items()}
    return sent


def test_every_type_of_field_and_its_keys_can_be_asked_for():
    assert COLOUR_WORDS.keys() == set(COLOURS)
    keys = {key for kind in FIELD_TYPES.values() for key in kind.keys}
    assert keys == {*KEY_FIELDS, *ROW_KEYS}


def test_a_task_from_nothing(as_ada, ada):
    steps = begin(as_ada)
    assert steps.post("goal/", name="Ferries", language="en").url == f"{steps.url}fields/"
    added = steps.post("fields/", label="Your review", type="long_text", place="input")
    assert added.url == f"{steps.url}fields/input/0/"
    review = {"was": "your_review", "label": "Your review", "type": "long_text", "place": "input"}
    stored = steps.post("fields/input/0/", **review, name="review", required="on", max_length=300)
    assert stored.url == f"{steps.url}fields/#fields"
    steps.post("fields/", label="Mood", type="multiclass", place="input")
    sad = {"value": "sad", "display": "rather sad", "colour": "orange"}
    rows = labels({"value": "glad", "colour": "teal"}, sad, {"value": ""})
    mood = {"was": "mood", "name": "mood", "label": "Mood", "type": "multiclass", "place": "input"}
    mood |= {"required": "on", "is_answer": "on"}
    assert steps.post("fields/input/1/", **mood, **rows).status_code == 302
    goal = {"name": "Ferries", "goal_field": "mood", "goal_text": "Write a review that is {mood}"}
    steps.post("goal/", **goal)
    assert steps.text == MADE
    preview = steps.post("goal/", **{**goal, "goal_text": "Sing {mood}!"}, page="write").text
    assert "Sing " in preview
    assert "Sing " not in steps.text
    judged = {"mode": "label", "rule": "at-least", "needed": 2, "of": 3, "judge_not_fooled": 0.2}
    assert 'class="colour-teal"' in steps.post("judging/", **judged, page="judge").text
    assert "no-preview" not in steps.get("preview/?page=judge").text
    made = steps.post("finish/", name="Ferries", code="ferries")
    assert made.url == "/own/ferries/"
    task = Task.objects.get()
    assert (task.config_text, task.made_by) == (MADE, ada)
    assert not TaskDraft.objects.exists()


def test_a_task_without_fields_offers_the_first_ones(as_ada):
    steps = begin(as_ada)
    page = steps.get("fields/")
    assert 'data-place="input:0"' not in page.text
    for choice in page.context["first_choices"]:
        assert steps.post("fields/", **choice["values"]).status_code == 302
    data = parse_data(steps.text)
    assert [field["type"] for field in data["context"]] == ["long_text"]
    assert [field["type"] for field in data["input"]] == ["long_text", "multiclass"]
    page = steps.get("fields/?place=validate")
    assert 'id="first-fields"' not in page.text
    # The link of an empty section chooses it in the form.
    assert "?place=validate#new-field" in page.text
    assert '<option value="validate" selected>' in page.text


def test_a_preview_of_nothing_says_what_will_stand_there(as_ada):
    preview = begin(as_ada).get("preview/").text
    assert 'id="goal"' in preview
    assert "…" not in preview.partition('id="goal"')[2].partition("</h1>")[0]


def test_fields_move_by_arrows_and_by_dragging_and_stay_where_they_cannot_go(as_ada):
    steps = begin(as_ada)
    for label, kind, place in [("A", "text", "context"), ("B", "text", "input"),
                               ("C", "multilabel", "input")]:  # fmt: skip
        steps.post("fields/", label=label, type=kind, place=place)

    def order():
        return [
            [f["name"] for f in parse_data(steps.text).get(p, ())] for p in ("context", "input")
        ]

    assert steps.post("fields/change/", do="down:input:0").url.endswith("?at=input-1-down")
    assert order() == [["a"], ["c", "b"]]
    moved = steps.get("fields/?at=input-1-down", **HTMX)
    assert "<html" not in moved.text
    assert moved.text.count("autofocus") == 1
    steps.post("fields/change/", do="move:input:1:context:0")
    assert order() == [["b", "a"], ["c"]]
    for wrong in ("move:input:0:context:0", "up:context:7", "up:nowhere:0", "up:input:x", ""):
        steps.post("fields/change/", do=wrong)
        assert order() == [["b", "a"], ["c"]]
    steps.post("fields/change/", do="remove:context:0")
    part = as_ada.get(f"{steps.url}fields/", headers={"hx-request": "true"})
    assert 'id="fields-part"' in part.text
    assert order() == [["a"], ["c"]]


def test_steps_lose_nothing_and_name_what_is_wrong(as_ada):
    steps = begin(as_ada)
    wrong = steps.post("goal/", name="", goal_text="Typed", language="?!")
    assert (wrong.status_code, 'value="Typed"' in wrong.text) == (422, True)
    assert 'href="#id_name"' in wrong.text
    assert steps.post("limits/", go="goal").status_code == 422
    back = steps.post("words/", instructions="1. **Look**\r\n2. Write", go="goal")
    assert back.url == f"{steps.url}goal/"
    assert parse_data(steps.text)["instructions"] == "1. **Look**\n2. Write"
    lines = "France: 3114\n\nUK: 116 123, samaritans.org: free"
    assert steps.post("words/", help_lines="Call somebody.", warning="W").status_code == 422
    assert steps.post("words/", help_lines=lines).status_code == 422  # of a warning alone
    steps.post("words/", instructions="1. **Look**\n2. Write", warning="Harsh.", help_lines=lines)
    support = parse_data(steps.text)["content_warning"]["support"]
    assert [one["region"] for one in support] == ["France", "UK"]
    assert steps.get("words/").text.count("UK: 116 123, samaritans.org: free") == 1
    typed = steps.post("fields/", label="Half", type="text", place="input", go="judging")
    assert typed.url == f"{steps.url}judging/"
    assert parse_data(steps.text)["input"][0]["name"] == "half"
    assert steps.post("fields/", label="", go="later").url == "/new/"
    assert "half" not in as_ada.get("/new/").text
    finish = steps.post("finish/", name="", code="my-code", go="goal")
    assert finish.status_code == 302
    steps.draft.refresh_from_db()
    assert steps.draft.code == "my-code"
    page = steps.get("finish/")
    assert page.context["is_stopped"]
    assert steps.post("finish/", name="N", code="my-code").status_code == 422
    assert not Task.objects.exists()
    other = {"was": "other", "name": "x", "label": "", "type": "text", "place": "input"}
    assert steps.post("fields/input/0/", **other).status_code == 422
    assert steps.get("fields/input/5/").status_code == 404
    assert steps.get("fields/nowhere/0/").status_code == 404


def sent_back(form):
    """What a browser sends of a form that nobody changed."""
    values = {bound.html_name: bound.value() for bound in form}
    return {name: one for name, one in values.items() if one not in (None, False)}


@pytest.mark.parametrize(
    "code", [c for c, t in load_templates().items() if t.config.kind != "arena"]
)
def test_every_step_of_every_template_keeps_what_it_says(code):
    data = parse_data(load_templates()[code].text)
    for step in FORMS.values():
        form = step(data, sent_back(step(data)))
        assert form.is_valid(), form.errors
        form.write(data)
    for place, path in SECTION_PATHS.items():
        for index, held in enumerate(get_value(data, path, ())):
            if repeats_input(data, place, {"name": held} if isinstance(held, str) else held):
                continue
            form = FieldForm(data, place, index, sent_back(FieldForm(data, place, index)))
            assert form.is_valid(), form.errors
            if rows := build_label_formset(get_fields(data, place)[index], form.row_key):
                sent = sent_back(rows.management_form)
                for row in rows:
                    sent |= sent_back(row)
                rows = build_label_formset(get_fields(data, place)[index], form.row_key, sent)
                assert rows.is_valid(), rows.errors
                write_labels(get_fields(data, place)[index], form.row_key, rows)
            form.write(data)
    assert load_config(format_data(complete_data(data))) == load_templates()[code].config


def test_what_judges_see_of_a_field_is_said_in_its_form_and_goes_when_it_moves(as_ada):
    steps = begin(as_ada)
    steps.post("fields/", label="Why", type="text", place="input")
    said = {"was": "why", "name": "why", "label": "Why", "type": "text", "place": "input"}
    steps.post("fields/input/0/", **said, judges_see="no", judges_label="Reason")
    assert parse_data(steps.text)["input"][0].items() >= {
        ("judges_see", False),
        ("judges_label", "Reason"),
    }
    assert 'value="no" selected' in steps.get("fields/input/0/").text
    steps.post("fields/input/0/", **said | {"place": "create"}, judges_see="no", judges_label="R")
    assert (
        not {"judges_see", "judges_label"} & parse_data(steps.text)["metadata"]["create"][0].keys()
    )


def test_both_answers_of_judges_have_words_or_none(as_ada):
    steps = begin(as_ada)
    sent = {"mode": "verdict", "rule": "n-equal", "needed": 2, "judge_not_fooled": 0.2}
    sent |= {"question": "Was it told?", "correct": "No"}
    assert steps.post("judging/", **sent).status_code == 422
    assert steps.post("judging/", **sent, incorrect="Yes").status_code == 302
    said = parse_data(steps.text)["validation"]
    assert (said["question"], said["answers"]) == (
        "Was it told?",
        {"correct": "No", "incorrect": "Yes"},
    )


def test_an_arena_has_fewer_steps(as_ada):
    as_ada.post("/new/template/arena/", {"name": "Mine", "code": "mine", "steps": "1"})
    steps = Steps(as_ada)
    found = [steps.get(f"{step}/").status_code for step in ("goal", "fields", "words", "limits")]
    assert found == [200, 404, 200, 404]
    assert steps.post("goal/", name="Chat", pairs="all").status_code == 422
    steps.post("goal/", name="Chat", summary="Talk.", pairs="uniform")
    assert load_config(steps.text).battles.pairs == "uniform"
    steps.post("goal/", name="Chat", summary="Talk.", pairs="informative")
    assert "battles" not in parse_data(steps.text), "the default is left out"
    assert steps.post("finish/", name="Chat", code="chat").url == "/own/chat/"


def test_examples_are_written_in_the_fields_of_the_task(as_ada):
    as_ada.post("/new/template/entities/", {"name": "Mine", "code": "mine", "steps": "1"})
    steps = Steps(as_ada)
    path = "examples/good/new/"
    page = steps.get(path).text
    assert 'name="context-sentence"' in page
    typed = {"context-sentence": "Ada met Ben.", "input-names": "Ada = person\nBen = person",
             "reason": "Two names.", "tactic": "two names"}  # fmt: skip
    assert steps.post(path, **{**typed, "reason": ""}).status_code == 422
    assert steps.post(path, **typed).url == f"{steps.url}words/"
    made = load_config(steps.text).examples.good[1]
    assert made.input["names"][1]["start"] == 8
    assert made.tactic == "two names"
    assert 'name="tactic"' not in steps.get("examples/bad/new/").text
    keys = re.findall(r"/examples/good/(\w{16})/", steps.get("words/").text)
    first, mine = (f"examples/good/{key}/" for key in keys)
    steps.post(first, remove="1")
    assert steps.post(mine, **{**typed, "reason": "Both."}).status_code == 302
    [left] = load_config(steps.text).examples.good
    assert left.reason == "Both."
    late = steps.post(mine, **typed)
    assert late.status_code == 422, "another window has changed it"
    assert f'action="{steps.url}{path}"' in late.text
    assert "Two names." in late.text
    assert [one.reason for one in load_config(steps.text).examples.good] == ["Both."]
    assert steps.get(mine).status_code == 404


def test_a_task_is_changed_by_the_same_steps(as_ada, ada, nli):
    TaskMember.objects.create(task=nli.task, user=ada, role="editor")
    text = nli.task.config_text.replace("version: 1\n", "version: 1\ntraining_rows: 50\n")
    Task.objects.update(config_text=text)
    as_ada.post("/own/nli/config/steps/")
    as_ada.post("/own/nli/config/steps/")
    steps = Steps(as_ada)
    assert "training_rows" in find_hidden_paths(parse_data(steps.text))
    assert "training_rows" in steps.get("goal/").text
    sent = {b.name: b.value() for b in steps.get("goal/").context["form"] if b.value()}
    steps.post("goal/", **{**sent, "name": "Another name"})
    page = steps.get("finish/")
    review = {"text": page.context["text"], "base": steps.draft.base}
    assert as_ada.post("/own/nli/config/", review).status_code == 200
    assert as_ada.post("/own/nli/config/", {**review, "step": "save"}).status_code == 302
    task = Task.objects.get()
    assert (task.name, task.config.training_rows, task.config_number) == ("Another name", 50, 2)
    assert not TaskDraft.objects.exists()
    as_ada.post("/own/nli/config/steps/")
    TaskMember.objects.all().delete()
    assert Steps(as_ada).get().status_code == 404
    assert as_ada.post("/own/nli/config/steps/").status_code == 404


def test_the_yaml_is_edited_by_hand_where_it_has_no_errors(as_ada):
    steps = begin(as_ada)
    wrong = steps.post("yaml/", text="version: 1\nname: [")
    assert (wrong.status_code, "name: [" in wrong.text) == (422, True)
    before = hash_text(steps.text)
    assert steps.post("yaml/", text=MADE, base=before).url == f"{steps.url}finish/"
    assert steps.text == MADE
    other = steps.post("yaml/", text=MADE.replace("Ferries", "Boats"), base=before)
    assert (other.status_code, steps.text) == (422, MADE)
    base = other.context["form"]["base"].value()
    assert steps.post("yaml/", text=MADE.replace("Ferries", "Boats"), base=base).status_code == 302


def test_fields_of_one_name_are_told_apart_again(as_ada):
    """A name taken by mistake is mended; what is seen of a field that was renamed is no error."""
    steps = begin(as_ada)
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    sent = {"label": "Your review", "type": "long_text", "place": "input"}
    sent |= {"max_length": 300, "required": "on"}
    steps.post("fields/input/0/", **sent, was="review", name="mood")
    assert steps.get("fields/").context["mends"]
    seen = steps.post("fields/input/0/", **sent, was="gone", name="x", page="write")
    assert seen.status_code == 200
    steps.post("fields/input/0/", **sent, was="mood", name="review")
    assert steps.text == MADE


def test_drafts_are_of_one_person_and_few(as_ada, settings):
    settings.NEW_TASKS_AT_ONCE = 1
    steps = begin(as_ada)
    assert as_ada.post("/new/draft/").url == "/new/"
    assert TaskDraft.objects.count() == 1
    assert f'href="{steps.url}goal/"' in as_ada.get("/new/").text
    assert f'href="{steps.url}goal/"' in as_ada.get("/me/").text
    stranger = signed_in(UserFactory())
    for path in ("goal/", "fields/", "finish/", "yaml/", "preview/"):
        assert stranger.get(steps.url + path).status_code == 404
        assert Client().get(steps.url + path).status_code == 302
    assert stranger.post(f"{steps.url}delete/").status_code == 404
    settings.NEW_TASKS = "nobody"
    assert stranger.post("/new/draft/").url == "/new/"
    assert as_ada.post(f"{steps.url}delete/").url == "/new/"
    assert not TaskDraft.objects.exists()


def test_where_administrators_decide_a_draft_becomes_a_private_task(as_ada, ada, settings):
    settings.NEW_TASKS = "approval"
    steps = begin(as_ada)
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    assert steps.post("finish/", name="Boats", code="boats").url == "/own/boats/"
    task = Task.objects.get()
    assert (task.name, task.made_by) == ("Boats", ada)
    assert (task.is_visible, task.is_unapproved) == (False, True)
    assert load_config(MADE).input == task.config.input


def test_a_preview_of_any_step_stores_nothing(as_ada, settings):
    """Also of a whole form, which without `page` would act: make the task, keep the example."""
    steps = begin(as_ada)
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    draft = TaskDraft.objects.values().get()
    settings.NEW_TASKS = "approval"
    mood = {"was": "mood", "name": "tone", "label": "Tone", "type": "multiclass", "place": "input"}
    typed = {
        "goal/": {"name": "Boats", "goal_text": "Sing"},
        "fields/": {"label": "New", "type": "text", "place": "input"},
        "fields/input/1/": mood | labels({"value": "glad"}),
        "answer/": {"verdict": "ask_user"},
        "words/": {"instructions": "Write."},
        "examples/good/new/": {"input-review": "Fine.", "input-mood": "glad", "reason": "So."},
        "judging/": {"mode": "label", "rule": "at-least", "needed": 2, "of": 3},
        "limits/": {"tries": 3},
        "finish/": {"name": "Boats", "code": "boats"},
    }
    addresses = {one.pattern._route for one in urlpatterns if "<int:pk>" in one.pattern._route}
    assert len(typed) == len(addresses - NO_FORMS) + len(FORMS) - 1, "a new step is named here"
    for path, sent in typed.items():
        for more in ({}, {"go": "later"}, {"remove": "1"}, {"more": "1"}):
            for page in ("write", "judge"):
                response = steps.post(path, **sent, **more, page=page)
                assert response.status_code == 200, path
                assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert TaskDraft.objects.values().get() == draft
    assert not TaskProposal.objects.exists()
    assert not Task.objects.exists()


def test_braces_in_the_goal_wait_for_their_label(as_ada):
    """A goal that names no label would blank every preview."""
    steps = begin(as_ada)
    refused = steps.post("goal/", name="Ferries", goal_text="Write a {mood} one")
    assert [*refused.context["form"].errors] == ["goal_text"]
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    told = {"name": "Ferries", "goal_text": "Write a {mood} one", "goal_field": "mood"}
    assert steps.post("goal/", **told).status_code == 302
    assert load_config(steps.text).goal.field == "mood"


def test_labels_are_pasted_as_a_list(as_ada):
    steps = begin(as_ada)
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    page = steps.get("fields/input/1/")
    form, rows = page.context["form"], page.context["rows"]
    sent = {key: value for key, value in form.initial.items() if key in form.fields and value}
    known = [row.initial for row in rows.forms if row.initial]
    sent |= {**labels(*known), "labels-INITIAL_FORMS": len(known)}
    steps.post("fields/input/1/", **sent, pasted=" angry \n\nglad\nangry\ncalm")
    values = load_config(steps.text).get_component("mood").values
    assert values[-2:] == ("angry", "calm")
    assert len(values) == len(set(values))


def test_the_step_of_the_answer_offers_what_fits(as_ada):
    steps = begin(as_ada)
    steps.post("yaml/", text=MADE, base=hash_text(steps.text))
    form = steps.get("answer/").context["form"]
    offered = dict(form.fields["also"].choices)
    assert {"accuracy", "macro_f1"} <= offered.keys()
    assert not {"kept_secret", "spans_f1", "ndcg"} & offered.keys()
    assert offered["macro_f1"] != "macro_f1"


def test_a_missing_answer_is_said_without_yaml(as_ada):
    steps = begin(as_ada)
    steps.post("goal/", name="Ferries")
    steps.post("fields/", label="Review", type="long_text", place="input")
    page = steps.get("finish/")
    mends = {one.problem.path: one for one in page.context["mends"]}
    assert mends.keys() == {"goal", "output"}, "what follows from the answer is no problem yet"
    assert [(one.step, one.number) for one in mends.values()] == [("goal", 1), ("fields", 2)]
    assert "output" not in mends["output"].words
    assert "`" not in "".join(str(one.words) for one in mends.values())
    assert f'href="{mends["goal"].url}"' in page.text
    done = [one.name for one in page.context["steps"] if one.is_done]
    assert done == [], "a step with errors is not done"
