"""A site where each text and answer is marked, and every address of it, for walks that look for
marks where they must not be."""

import gzip
import json
import re
from dataclasses import dataclass
from itertools import product
from uuid import uuid4

from django.core.files.base import ContentFile
from django.urls import URLPattern

from annotation.models import Example
from core.accounts.models import Annotator
from dynabench.catches.models import SharedCatch
from dynabench.urls import urlpatterns
from evaluation.test_sets.selectors import read_input_rows
from evaluation.test_sets.source_services import make_held_version, make_release_version
from tasks.models import Round
from tests.api.world import make_world
from tests.support.boards import measured
from tests.support.campaigns import paid_place
from tests.support.evaluations import accepted_model
from tests.support.factories import ContextFactory, RoundFactory, UserFactory
from tests.support.releases import LABELS, released, votes
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.discussion.services import add_comment
from validation.judging.gold import mark_gold
from validation.models import Comment, Validation

MARK = re.compile(rb"MARK-(\d+)-(TEXT|ANSWER)")
OPEN = "open"
FIRST_OPEN = 1000
"""Numbers of marks from here on are of the open round."""


@dataclass
class Sealed:
    """A world with a released round, in which labels are private and a fifth is held back."""

    world: object
    part_of: dict  # the part of the release that a mark's row is in, by its number
    ids: dict

    def found(self, response):
        """{(part, TEXT or ANSWER)} of all marks in a response."""
        chunks = response.streaming_content if response.streaming else [response.content]
        body = b"".join(chunks)
        if body.startswith(b"\x1f\x8b"):
            body = gzip.decompress(body)
        return {(self.part_of[int(n)], kind.decode()) for n, kind in MARK.findall(body)}


def make_sealed_world():
    """Round 0 is released so, round 1 whole, round 2 is open; models ran on what is sealed."""
    world = make_world()
    world.task.config_text = world.task.config_text.replace(
        "\nsupport:\n", "\nsupport:\n  minimal_edit: true\n  suggestions: true\n"
    )
    world.task.save()
    first = RoundFactory(task=world.task, number=0, state="closed")
    contexts = ContextFactory.create_batch(3, round=first)
    authors = Annotator.objects.bulk_create(Annotator(pseudonym=f"w-m{n}") for n in range(16))
    old = [_marked(first, contexts[n % 3], authors[n // 3], n) for n in range(36)]
    _judge(old, authors[13:])
    dataset = released(first, dev=4, test=8, private_test=True, hold_back=True)
    live = Round.objects.get(task=world.task, number=2)
    contexts = list(live.contexts.all())
    new = [_marked(live, contexts[n % 3], authors[n], FIRST_OPEN + n) for n in range(6)]
    _judge(new[:2], authors[13:])
    mark_gold(example=new[0], owner=world.owner, explanation=f"MARK-{FIRST_OPEN}-ANSWER")
    part_of = {FIRST_OPEN + n: OPEN for n in range(len(new))}
    for item in dataset.items.select_related("example"):
        part_of[_number(item.example)] = item.split
    for one in old:
        part_of.setdefault(_number(one), "left out")
    sealed = [one for one in old if part_of[_number(one)] in ("test", "held")]
    for one in (*sealed, *new):
        add_comment(example=one, author=authors[0], text=f"MARK-{_number(one)}-ANSWER")
    _share([*sealed, *new[:2]])
    ids = _ids(world, dataset, [*_one_of_each(part_of, old), *new[:3]])
    return Sealed(world, part_of, ids)


def _share(examples):
    """Their authors agree to pages of these catches, which a release may forbid all the same."""
    for author in {example.annotator for example in examples}:
        user = UserFactory()
        Annotator.objects.filter(user=user).delete()  # each user gets one
        Annotator.objects.filter(pk=author.pk).update(user=user)
    SharedCatch.objects.bulk_create(
        SharedCatch(example=example, annotator=example.annotator) for example in examples
    )


def _marked(round, context, author, number):
    label = LABELS[number % 3]
    return Example.objects.create(
        round=round,
        context=context,
        annotator=author,
        goal=label,
        inputs={"hypothesis": f"MARK-{number}-TEXT is so.", "label": label},
        metadata={"why_right_text": f"MARK-{number}-ANSWER"},
        digest=f"m{number}",
        outcome="fooled",
    )


def _judge(examples, people):
    cast = [vote for one in examples for vote in votes(one, people, one.goal)]
    for vote in cast:
        vote.comment = f"MARK-{_number(vote.example)}-ANSWER"
    Validation.objects.bulk_create(cast)
    derive_consensus_of_all(examples)


def _number(example):
    return int(MARK.search(example.inputs["hypothesis"].encode())[1])


def _one_of_each(part_of, examples):
    return list({part_of[_number(one)]: one for one in examples}.values())


def _ids(world, dataset, examples):
    """The world's ids with what is sealed, by the part of an address before them."""
    task = world.task
    versions = [make_release_version(dataset), make_held_version(dataset)]
    runs = [_run(task, name, one) for name in ("first", "second") for one in versions]
    study = task.campaigns.order_by("pk").first()
    ids = {name: list(known) for name, known in world.ids.items()}
    shared = [one.evaluation_set.name for one in versions]
    comments = Comment.objects.filter(example__in=examples).values_list("pk", flat=True)
    return ids | {
        "models": [runs[0].submission_id, *ids["models"][:1]],
        "runs": [run.pk for run in runs[:2]],
        "rounds": [0, 2],
        "examples": [one.uuid for one in examples],
        "files": [one.name for one in dataset.files.all()],
        "evaluation-sets": shared,
        "predictions": shared,
        "sets": [one.pk for one in versions],
        "comments": list(comments),
        "places": [paid_place(study, 1).pk],
        "payments": [study.all_places.get().payments.create(kind="bonus", state="done").pk],
        "pair": [runs[0].submission_id, runs[-1].submission_id],
    }


def _run(task, name, version):
    """A published model's run on the version; it answered neutral to everything."""
    model = task.submissions.filter(name=name).first()
    model = model or accepted_model(task, UserFactory(), name=name, is_published=True)
    measured(model, version, 0.6)
    run = model.runs.get(suite="plain", version=version)
    said = [
        {"uid": row["uid"], "answer": "neutral", "prob": None} for row in read_input_rows(version)
    ]
    lines = "\n".join(map(json.dumps, said)).encode()
    run.predictions.save("p", ContentFile(gzip.compress(lines)))
    return run


# Addresses

ONE = {
    **dict.fromkeys(("key", "token", "provider_id", "uidb36"), "none"),
    "code": "nli",
    "version": 1,
    "index": 0,
    "step": "goal",
    "place": "input",
    "tool": "doccano",
    "action": "pause",
    "who": "authors",
    "format": "svg",
    "delivery": uuid4(),
    "member": 1,
}
"""What stands for a parameter wherever it is."""
AS = {
    "draft": "assignments",
    "talk": "assignments",
    "context": "contexts",
    "m": "models",
    "attempt": "attempts",
    "judge": "examples",
    "review": "examples",
    "catches": "examples",
    "c": "campaigns",
    "targets": "target-models",
    "rounds": "rounds",
    "media": "media",
    "image": "images",
    "forks": "forks",
    "g": "communities",
    "metrics": "forks",
    "data": "files",
    "pairs": "tasks",
}
"""The ids of a parameter by the part before it, where they have another name."""
NOTHING = {
    "llm-judges": 1,
    "judges": 1,
    "gold": 1,
    "conversations": 1,
    "battle": uuid4(),
    "studies": "none",
    "study": 1,
    "s": "none",
    "submissions": 1,
    "keys": 1,
    "draft": 1,
    "v": 1,
    "fields": "input",
    "examples": "good",
    "new": "template",
    "chart": "people-and-model",
    "template": "nli",
    "good": "none",
    "proposals": 1,
    "docs": "owners",
    "pictures": "write.png",
    "short": uuid4(),
}
"""Of what the world has none."""


def pages(patterns=urlpatterns, before=""):
    """Every page's address as it is written, without the admin's and the API's."""
    for one in patterns:
        address = before + re.sub(r"^\^|\$$|\\", "", str(one.pattern))
        if address.startswith(("admin/", "api/")):
            continue
        if isinstance(one, URLPattern):
            yield address
        else:
            yield from pages(one.url_patterns, address)


PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


def addresses_of(ids, route):
    """All addresses of a route: of each thing that may stand in it.

    Raises KeyError for a parameter of which nothing is known: say in ONE, AS or NOTHING what it is.
    """
    places = list(PARAMETER.finditer(route))
    values = [_values(ids, route, one[1] or one[2], _before(route, one.start())) for one in places]
    pattern = PARAMETER.sub("{}", route)
    return [pattern.format(*chosen) for chosen in product(*values)]


def _before(route, place):
    """The last part of the route before this place that is no parameter."""
    parts = PARAMETER.sub("", route[:place]).split("/")
    return [part for part in parts if part][-1]


def _values(ids, route, name, before):
    if name in ONE:
        return [ONE[name]]
    if name == "kind":
        return ["ledger"] if route.endswith(".csv") else ["template"]
    if route.startswith("new/"):  # nobody here has begun a task
        return [NOTHING[before]]
    known = AS.get(before, before)
    if known in ids:
        return ids[known]
    return [NOTHING[before]]
