"""One walk: a field of each type through every stage, from the configuration to the evaluation."""

import csv
import gzip
import io
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.files.base import ContentFile
from django.core.management import call_command
from django.utils.html import escape

from annotation.models import Assignment, Example
from annotation.selectors import find_near_duplicates
from core.accounts.models import User
from dynabench.people.export import export_person
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.jobs import build_dataset, evaluate_next
from evaluation.models import Score
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_round_version
from tasks.config.checks import list_types_for
from tasks.config.loading import check_config
from tasks.models import Round, Task, TaskMember
from tests.support import media
from tests.support.evaluations import accepted_model, queued_run
from tests.support.factories import ContextFactory, UserFactory, scripted_target
from tests.support.writing import ok, signed_in
from tests.support.writing_aids import next_round
from tests.web.conftest import HTMX
from validation.models import Gold, Validation

PASSAGE = "The bus stops at Tarn at six."
TEXT = "Something new about the bus that stops here."
CHOICES = {"labels": [{"value": "a", "display": "the first"}, "b"]}
OFFERS = ["By bus,\nat six.", "On foot."]
CALL = {"id": "c1", "name": "hours", "arguments": {"day": "Monday"}}
TURNS = [
    {"role": "user", "text": "Is it open?"},
    {"role": "assistant", "text": "", "calls": [CALL]},
    {"role": "tool", "text": "Closed.", "call": "c1"},
    {"role": "assistant", "text": "No."},
]
VARIANTS = {"input": ["ranking"], "output": ["ranking"]}  # place: further shapes of a type
TYPES = {"ranking": "candidates"}  # variant: its type
KEYS = {
    "candidates": {"reference": "offers"},
    "ranking": {"reference": "offers", "rank": True},
    "span": {"reference": "passage"},
    "spans": {"reference": "passage", "tags": ["place", "time"]},
    "multiclass": CHOICES,
    "multilabel": CHOICES,
    "slider": {"minimum": 0, "maximum": 5, "step": 0.5},
    "prob": {"single": True},
    "criteria": {"points": True},
}
SPAN = {"text": "Tarn", "start": 17, "end": 21}
VALUES = {  # type: what the form sends, what is stored
    "text": ("one line", "one line"),
    "long_text": ("several\r\nlines", "several\nlines"),
    "span": ("Tarn", SPAN),
    "candidates": (OFFERS[0].replace("\n", "\r\n"), OFFERS[0]),
    "ranking": (["2", "1"], OFFERS[::-1]),
    "multiclass": ("a", "a"),
    "multilabel": (["a", "b"], ["a", "b"]),
    "chat": ("", TURNS),
    "number": ("0", 0.0),
    "slider": ("2.5", 2.5),
    "prob": ("0.35", 0.35),
    "criteria": (
        "Says six o’clock = 3\r\nInvents another stop = -2",
        [{"text": "Says six o’clock", "points": 3}, {"text": "Invents another stop", "points": -2}],
    ),
    "spans": (
        "Tarn = place\r\nsix @25 = time",
        [SPAN | {"tag": "place"}, {"text": "six", "start": 25, "end": 28, "tag": "time"}],
    ),
}
MEDIA = ("image", "audio")
VALUES |= {kind: ("", media.value(kind)) for kind in MEDIA}
WRONG = {  # type: what another model answers
    "span": "bus",
    "candidates": OFFERS[1],
    "ranking": OFFERS,
    "multiclass": "b",
    "number": 7,
    "slider": 0,
    "prob": 0.9,
    "spans": [SPAN | {"tag": "time"}],
}
TALK = {  # where the input is a conversation
    "input": [{"name": "a_chat", "type": "chat", "label": "The chat"}],
    "output": [{"name": "reply", "type": "long_text", "label": "The reply"}],
    "verdict": {"type": "ask_user"},
    "metrics": {"main": "exact_match"},
}
RULES = {"ranking": "rank", "spans": "spans_f1"}  # of a target field, where equality is none
METRICS = {"ranking": "pair_accuracy", "spans": "spans_f1"}
COLUMNS = {"context": "context_json", "input": "input_json", "metadata": "metadata_json"}
KEY = "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10"


def config_text(place, *kinds):
    """A task with one field of each type in this place, named after its type."""
    parts = [
        {
            "name": f"a_{kind}",
            "type": TYPES.get(kind, kind),
            "label": f"The {kind}",
            **({} if place == "context" and kind == "candidates" else KEYS.get(kind, {})),
        }
        for kind in kinds
    ]
    label = {"name": "label", "type": "multiclass", "label": "Your label", "labels": ["yes", "no"]}
    targets = parts if place == "output" and kinds != ("prob",) else [label]
    config = {
        "version": 1,
        "name": "Walk",
        "instructions": "Write.",
        "goal": {"text": "Write something"},
        "context": [
            {"name": "passage", "type": "text", "label": "Passage"},
            {"name": "offers", "type": "candidates", "label": "Offers"},
        ],
        "input": [{"name": "text", "type": "long_text", "label": "Text"}, *targets],
        "output": ["label"] if targets == [label] else [*targets],
        "verdict": _rule(targets, *kinds),
        "metrics": {"main": METRICS.get(kinds[0], "accuracy") if targets is parts else "accuracy"},
        "validation": {"votes": {"needed": 1}},
        "support": {"minimal_edit": True},
    }
    if place == "metadata":
        ask = [{**part, "required": False} for part in parts]
        after = [
            {**part, "name": f"after_{part['type']}", "when": {"verdict": "correct"}}
            for part in ask
        ]
        config["metadata"] = {"create": ask, "validate": after}
    elif targets is not parts:
        config[place] += parts
    return json.dumps(config, indent=1)


def _rule(targets, kind, *others):
    if targets[0]["name"] == f"a_{kind}" and kind in RULES:
        return {"type": RULES[kind], "field": f"a_{kind}"}
    return {"type": "exact_match", "fields": [one["name"] for one in targets]}


def kinds_in(place):
    """The types that work there, with the further shapes of some."""
    kinds = [*list_types_for(place), *VARIANTS.get(place, [])]
    return [kind for kind in kinds if (place, kind) != ("input", "chat")]  # tests/web/test_chat.py


TASKS = {
    "context": [kinds_in("context")],
    "input": [kinds_in("input"), ["chat"]],
    "output": [[kind] for kind in kinds_in("output")],
    "metadata": [kinds_in("metadata")],
}
"""By place the types of each task; a model gives one answer, and a task holds one conversation."""


def opened(text, *, code="walk", **fields):
    """An open round of a task of that configuration, and a client of its owner."""
    email = "owner@example.com"
    owner = User.objects.filter(email=email).first() or UserFactory(email=email)
    task = Task.objects.create(code=code, name=code.title(), config_text=text)
    TaskMember.objects.create(task=task, user=owner, role="owner")
    round = Round.objects.create(task=task, number=1, state="open")
    for kind in MEDIA:
        media.stored(task, kind)
    ContextFactory(round=round, fields={"passage": PASSAGE, "offers": OFFERS, **fields})
    return round, signed_in(owner)


@dataclass
class Walk:
    """Fields of these types in one place of a task, by name: what is `sent`, what is `stored`."""

    place: str
    kinds: list[str]
    author: Any = None
    judge: Any = None
    shown: str = ""  # the judge page

    @cached_property
    def text(self):
        text = json.loads(config_text(self.place, *self.kinds))
        if self.is_talk:
            del text["support"]
            text |= TALK
        good = {
            "context": self.texts,
            "input": {"text": TEXT, "label": "yes", **self.written},
            "reason": "Good.",
        }
        for part in text["input"]:
            if part["name"] in self.written:
                part["judges_see"] = True  # what no model reads is hidden from judges otherwise
        known = [part["name"] for part in text["input"]]
        good["input"] = {name: good["input"][name] for name in known}
        text["examples"] = {"good": [good]}
        return json.dumps(text, indent=1)

    @property
    def is_talk(self):
        """The model's answer is a part of it, and no field of the form."""
        return (self.place, self.kinds) == ("input", ["chat"])

    @property
    def wrong(self):
        """What a model answers that is fooled, by field."""
        if self.is_talk:
            return {"reply": TURNS[-1]["text"]}
        kinds = self.kinds if self.is_target else ()
        return {f"a_{kind}": WRONG.get(kind, "no") for kind in kinds} or {"label": "no"}

    @property
    def is_belief(self):
        """Only models give it."""
        return (self.place, self.kinds) == ("output", ["prob"])

    @property
    def is_target(self):
        return self.place == "output" and not self.is_belief

    @property
    def values(self):
        values = {} if self.is_belief else dict(VALUES)
        if self.is_talk:
            values["chat"] = ("", TURNS[:1])
        return {**values, **({"candidates": ("", OFFERS)} if self.place == "context" else {})}

    @property
    def sent(self):
        kinds = [kind for kind in self.kinds if kind in self.values and kind not in MEDIA]
        files = [media.sent(f"a_{kind}", kind) for kind in self.kinds if kind in MEDIA]
        sent = {f"a_{kind}": self.values[kind][0] for kind in kinds}
        return sent | {name: value for file in files for name, value in file.items()}

    @property
    def stored(self):
        return {f"a_{kind}": self.values[kind][1] for kind in self.kinds if kind in self.values}

    @property
    def given(self):
        return self.stored if self.place == "context" else {}

    @property
    def texts(self):
        """The whole context."""
        return {"passage": PASSAGE, "offers": OFFERS, **self.given}

    @property
    def written(self):
        return self.stored if self.place in ("input", "output") else {}

    @property
    def form(self):
        page = ok(self.author.get("/t/walk/write/"))
        assert "error-summary" not in page.text
        form = {"attempt_key": KEY, "assignment": Assignment.objects.get().pk, "goal": ""}
        form |= {"text": TEXT, "label": "yes"}
        return form | (self.sent if self.place in ("input", "output") else {})

    @property
    def words(self):
        """What lists show of the example."""
        return TURNS[0]["text"] if self.is_talk else TEXT

    @property
    def example(self):
        return Example.objects.get(retracted_at=None)


def configuration(walk):
    walk.config, problems = check_config(walk.text)
    assert walk.config, problems
    walk.round, walk.as_owner = opened(walk.text, **walk.given)
    answer = {"label": "no"}
    if walk.is_target:
        answer = walk.stored
        if walk.kinds == ["span"]:
            answer = {"a_span": "Tarn", "start": 17, "end": 21}
    scripted_target(walk.round, output=answer)


def import_of_contexts(walk):
    """A file with the same fields; of the same text nothing new."""
    fields = walk.texts
    cells = {n: v if isinstance(v, str) else json.dumps(v) for n, v in fields.items()}
    for ending in ("jsonl", "csv"):
        path = walk.folder / f"contexts.{ending}"
        with path.open("w", newline="") as file:
            if ending == "csv":
                csv.writer(file).writerows([cells, cells.values()])
            else:
                file.write(json.dumps(fields))
        out = io.StringIO()
        call_command("import_contexts", "walk", str(path), stdout=out)
        assert "0 new, 1 duplicates" in out.getvalue()


def preview(walk):
    for page in ("write", "judge"):
        told = {"text": walk.text, "page": page}
        assert 'id="work"' in ok(walk.as_owner.post("/own/walk/config/preview/", told)).text


def try_out(walk):
    form = walk.form | {"assignment": "0"}
    assert 'id="verdict"' in ok(walk.author.post("/t/walk/try/", form, **HTMX)).text
    assert not Example.objects.exists()


def draft(walk):
    """What is typed stays, in a draft and in a form that is refused without JavaScript."""
    form = walk.form
    ok(walk.author.post(f"/draft/{form['assignment']}/", form, **HTMX))
    kept = Assignment.objects.get().draft
    assert {*walk.written} <= {*kept}
    refused = walk.author.post("/t/walk/write/", form | {"text": ""})
    assert refused.status_code == 422
    for name in walk.written:
        assert refused.context["form"][name].value() not in (None, "", [])


def write(walk):
    """With plain forms, as without JavaScript; the answers afterwards too."""
    page = ok(walk.author.post("/t/walk/write/", walk.form, follow=True))
    assert 'id="verdict"' in page.text
    assert walk.written.items() <= walk.example.inputs.items()
    if walk.place == "metadata":
        why = f"/attempt/{walk.example.uuid}/why/"
        ok(walk.author.post(why, walk.sent, follow=True))
    assert walk.example.metadata == (walk.stored if walk.place == "metadata" else {})


def verdict(walk):
    if walk.is_target:
        assert walk.example.outcome == "not_fooled"
        Example.objects.update(outcome="fooled")  # so that it is judged
    assert walk.example.outcome == "fooled"


def api(walk):
    """It reads the same; what it writes is checked by the same rules."""
    reply = ok(walk.author.get(f"/api/v1/examples/{walk.example.uuid}/")).json()
    assert walk.written.items() <= reply["inputs"].items()
    assert walk.given.items() <= reply["context"]["fields"].items()
    url = f"/api/v1/assignments/{Assignment.objects.get().pk}/examples/"
    label = {} if walk.is_target else {"label": "yes"}
    body = {"inputs": {"text": "Quite another text.", **label, **walk.written}}
    made = walk.author.post(url, body, content_type="application/json")
    assert made.status_code == 201, made.text
    assert walk.written.items() <= made.json()["inputs"].items()
    ok(walk.author.post(f"/api/v1/examples/{made.json()['id']}/retract/"))


def near_duplicates(walk):
    found = find_near_duplicates(Assignment.objects.get(), {"text": TEXT, **walk.written})
    assert found.own_example == walk.example
    for name in {*walk.written} & {*walk.config.media_fields}:  # another file: another example
        other = {"text": TEXT, **walk.written, name: {"digest": "0" * 64}}
        assert find_near_duplicates(Assignment.objects.get(), other).own_example is None


def judging(walk):
    item = walk.judge.post("/api/v1/tasks/walk/judging/next/", content_type="application/json")
    assert walk.written.items() <= item.json()["inputs"].items()
    assert walk.given.items() <= item.json()["context"].items()
    page = ok(walk.judge.get("/t/walk/judge/"))
    walk.shown = page.text
    shows_files(page, walk.written | walk.given)
    for name, value in walk.given.items():
        assert escape(walk.config.display(name, value)) in page.text
    sent = {"example": walk.example.uuid, "answer": "verdict:correct"}
    ok(walk.judge.post("/t/walk/judge/", sent, follow=True))
    answers = {}
    if walk.place == "metadata":
        answers = {f"after_{kind}": walk.sent[f"a_{kind}"] for kind in walk.kinds}
        ok(walk.judge.post(f"/judge/{walk.example.uuid}/after/", answers, follow=True))
    wanted = {name: walk.stored[name.replace("after", "a")] for name in answers}
    assert Validation.objects.get().metadata == wanted


def shows_files(page, values):
    """Pictures and recordings are seen there, and not only their words."""
    for value in values.values():
        if isinstance(value, dict) and "digest" in value:
            assert f'src="/media/{value["digest"]}/"' in page.text
            assert value["alt"] in page.text


def my_work(walk):
    for page in ("/me/", f"/attempt/{walk.example.uuid}/"):
        shows_files(ok(walk.author.get(page)), walk.written)
    mine = "".join(export_person(walk.writer, walk.writer.annotator))
    assert walk.written.items() <= json.loads(mine)["examples"][0]["inputs"].items()


def review_and_numbers(walk):
    for page in ("review/", f"review/{walk.example.uuid}/", "", "annotators/"):
        ok(walk.as_owner.get(f"/own/walk/{page}"))
    shows_files(ok(walk.as_owner.get(f"/own/walk/review/{walk.example.uuid}/")), walk.stored)
    for page in ("/t/walk/", "/t/walk/data/"):
        ok(walk.as_owner.get(page))


def minimal_edit(walk):
    """Somebody else changes it in the next round: their form begins with what was written."""
    Gold.objects.all().delete()
    next_round(walk.round)
    ok(walk.judge.post("/t/walk/write/next/", {"want": "edit"}, follow=True))
    form = ok(walk.judge.get("/t/walk/write/")).context["form"]
    assert form["text"].value() == TEXT
    for name in walk.written:
        assert form[name].value() not in (None, "", [])


def gold(walk):
    url = f"/own/walk/review/{walk.example.uuid}/gold/"
    ok(walk.as_owner.post(url, {"explanation": "So it is."}, follow=True))
    assert Gold.objects.get().example == walk.example


def export_of_a_round(walk):
    lines = ok(walk.as_owner.get("/own/walk/rounds/1/export.jsonl")).getvalue().splitlines()
    (row,) = map(json.loads, lines)
    assert json.loads(row["input_json"]) == walk.example.inputs


def import_of_history(walk):
    label = {"author_label": "yes"} if not walk.is_target else {"author_label": None}
    row = {
        "task": "walk", "round": 7, "uid": "u1", "author": "w1", "metadata": {},
        "model_wrong": None, "context": walk.texts,
        "input": {"text": TEXT, **walk.written}, "model_prediction": None,
        "validations": [{"worker": "w2", "verdict": "correct"}], **label,
    }  # fmt: skip
    file = walk.folder / "history.jsonl"
    file.write_text(json.dumps(row))
    call_command("import_examples", str(file), stdout=io.StringIO(), stderr=io.StringIO())
    example = Example.objects.get(uid="u1")
    assert walk.written.items() <= example.inputs.items()
    ok(walk.as_owner.get(f"/own/walk/review/{example.uuid}/"))
    example.validations.all().delete()
    example.delete()


def release(walk):
    Round.objects.filter(pk=walk.round.pk).update(state="closed")
    walk.round.refresh_from_db()
    row, card = released(walk.round)
    assert json.loads(row["input_json"]) == walk.example.inputs
    for name in walk.stored if walk.place != "output" else ():
        part = walk.config.get_component(name)
        assert f"- `{name}` in `{COLUMNS[walk.place]}`: {part.kind.describe_value(part)}\n" in card


def evaluation(walk):
    """A model that answers otherwise is scored on what people wrote; its owner reads the errors."""
    version = make_round_version(walk.round)
    (row,) = read_set_rows(version)
    kind = walk.kinds[0] if walk.is_target else "label"
    wrong = WRONG.get(kind, "no")
    line = {"id": row.uid, "output": {walk.config.answer_field: wrong}}
    model = accepted_model(walk.round.task, name="other", kind="predictions")
    model.file.save("p.jsonl.gz", ContentFile(gzip.compress(json.dumps(line).encode())))
    run = queued_run(model, version)
    evaluate_next(run.pk)
    run.refresh_from_db()
    assert run.state == "done", run.error
    assert Score.objects.get(run=run, slice="", kind="").value < 1
    page = ok(walk.as_owner.get(f"/m/{model.pk}/runs/{run.pk}/wrong/"))
    assert "{&#x27;" not in page.text
    assert "[&#x27;" not in page.text
    shows_files(page, walk.written | walk.given)
    ok(walk.as_owner.get(f"/api/v1/models/{model.pk}/runs/{run.pk}/wrong/"))


STAGES = (
    *(configuration, import_of_contexts, preview, draft, try_out, write, verdict, near_duplicates),
    *(api, judging, my_work, review_and_numbers, gold, export_of_a_round),
    *(import_of_history, release, evaluation, minimal_edit),
)


def walk(place, kinds, alice, bob, folder):
    """From the configuration to the evaluation, with one field of each type in this place."""
    here = Walk(place, kinds, signed_in(alice), signed_in(bob))
    here.folder, here.writer = folder, alice
    for stage in STAGES:
        stage(here)
    return here.shown


def released(round):
    """The one row and the card of a release of the round."""
    dataset = request_release(round=round, options=Options(dev=0, test=0), actor=None)
    build_dataset(dataset.pk)
    with dataset.files.get(name="train.jsonl").file.open() as file:
        row = json.loads(file.read())
    with dataset.files.get(name="README.md").file.open() as file:
        return row, file.read().decode()
