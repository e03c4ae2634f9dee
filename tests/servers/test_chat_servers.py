"""Chat models on servers that others wrote: each answer is the one that people get by themselves.

`by_hand` asks with OpenAI's own client, and reads labels by a rule of its own.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import openai
import pytest
from django.core.management import call_command

from annotation.models import Attempt, Example
from core.accounts.services import get_annotator
from evaluation.contract import SetRow
from evaluation.jobs import ask_llm_judge
from evaluation.judges.llm_judges.questions import ANSWER_FIELD
from evaluation.judges.llm_judges.questions import VERDICT_LABELS as VERDICTS
from evaluation.judges.llm_judges.selectors import find_judged_answers
from evaluation.judges.llm_judges.services import create_judge
from evaluation.models import EvaluationRun
from evaluation.runs.chat.asking import make_chat_endpoint
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.submissions.services import submit_model
from leaderboard.models import Contestant
from tasks.models import RoundTarget, TargetModel, Task
from tasks.targets.connect import build_chooser_endpoint, build_messages, get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tests.support.battles import battle_arena, send
from tests.support.evaluations import set_version
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.judged_answers import judged_answers
from tests.support.other_servers import Server, running
from tests.support.submissions import work_off
from tests.support.talks import URL as TALK_URL
from tests.support.talks import hidden, opened, say
from tests.support.writing import ok, open_form, signed_in
from tests.web.conftest import HTMX

from .conftest import Figures

pytestmark = pytest.mark.language_model

SERVERS = [
    "transformers",
    *(pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("llama_cpp", "vllm")),
    pytest.param("litellm", marks=pytest.mark.litellm),
]
MOST_TOKENS = 24
REVIEWS = (
    "What a lovely day we had at this hotel!",
    "An awful film. I left after ten minutes.",
    "The museum opens at nine.",
    "The soup was cold and the waiter was rude.",
    "I would come back tomorrow.",
    "The box holds twelve screws.",
    "Best concert of my life.",
    "It broke on the second day.",
    "The train leaves from platform four.",
    "Kind people, great food.",
    "Never again.",
    "The room has two windows.",
)


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Server]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def key(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variable that holds the server's key; empty: it wants none."""
    monkeypatch.setenv("KEY_OF_THE_TESTS", server.key)
    return "KEY_OF_THE_TESTS" if server.key else ""


def by_hand(
    server: Server, messages: Sequence[Any], *, answer: Mapping[str, Any] | None = None
) -> Any:
    """A server's first choice. answer: the form of it, which a server may refuse."""
    client = openai.OpenAI(
        base_url=server.url, api_key=server.key or "none", timeout=600, max_retries=0
    )
    asked = {
        "model": server.model, "messages": messages, "temperature": 0, "max_tokens": MOST_TOKENS
    }  # fmt: skip
    if answer:
        try:
            return client.chat.completions.create(**asked, response_format=answer).choices[0]
        except openai.APIStatusError:
            pass
    return client.chat.completions.create(**asked).choices[0]


def text_by_hand(server: Server, messages: Sequence[Any]) -> str:
    return str(by_hand(server, messages).message.content).strip()


def label_by_hand(
    server: Server, messages: Sequence[Any], field: str, labels: Sequence[str]
) -> str | None:
    """The one label that stands in an answer as a word; None: there is none, or it was cut."""
    schema = {
        "type": "object",
        "properties": {field: {"type": "string", "enum": [*labels]}},
        "required": [field],
        "additionalProperties": False,
    }
    form = {
        "type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}
    }  # fmt: skip
    choice = by_hand(server, messages, answer=form)
    said = (choice.message.content or "").casefold()
    named = [label for label in labels if re.search(rf"\b{label}\b", said)]
    is_given = len(named) == 1 and choice.finish_reason == "stop"
    is_turned_around = any(re.search(rf"\bnot (an? )?{label}\b", said) for label in named)
    return named[0] if is_given and not is_turned_around else None


def count_same(
    figures: Figures, server: Server, asked: str, ours: Sequence[Any], ask: Callable[[int], Any]
) -> None:
    """Note in how many cases both say the same, which must be all. ask: by hand, for each case.

    llama.cpp keeps what it read last, after which it may answer the same request otherwise: there a
    second try counts.
    """
    theirs = [ask(number) for number in range(len(ours))]
    if server.name == "llama_cpp":
        theirs = [one if one == ours[n] else ask(n) for n, one in enumerate(theirs)]
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    readable = sum(one is not None for one in theirs)
    figures[server.name][asked] = f"{same} of {len(theirs)} ({readable} answered)"
    assert list(ours) == list(theirs)


def test_a_submission_gets_the_same_labels(server: Server, figures: Figures) -> None:
    task = TaskFactory(code="sentiment")
    labels = task.config.get_component(task.config.answer_field).values
    (field,) = task.config.model_fields
    chat = make_chat_settings(task.config, model=server.model, max_tokens=MOST_TOKENS)
    reads = make_chat_endpoint(task.config, server.url, server.key, chat)

    def ask(number: int) -> str | None:
        messages = reads.build_visible_messages({field: REVIEWS[number]})
        return label_by_hand(server, messages, task.config.answer_field, labels)

    rows = [SetRow(f"u{n}", {field: text}, (labels[0],)) for n, text in enumerate(REVIEWS)]
    set_version(task, "dev", rows=rows, may_leave=True)
    submit_model(
        task=task, owner=UserFactory(), kind="chat", name="m", source=server.url,
        secret=server.key, chat=chat,
    )  # fmt: skip
    work_off()
    run = EvaluationRun.objects.get(suite="plain")
    assert run.outcome == "ok", (run.outcome, run.log)
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        answers = {told["uid"]: told["answer"] for told in map(json.loads, lines)}
    count_same(figures, server, "submission", [answers[row.uid] for row in rows], ask)


def test_an_evaluation_from_the_shell(server: Server, key: str) -> None:
    task = TaskFactory(code="sentiment")
    (field,) = task.config.model_fields
    # Several: of one, a small model that no schema binds may give no label.
    rows = [SetRow(str(place), {field: one}, ("positive",)) for place, one in enumerate(REVIEWS)]
    set_version(task, "dev", rows=rows)
    told = StringIO()
    call_command(
        "evaluate", "--json", "--task", "sentiment", "--dataset", "dev", server.model,
        chat=server.url, secret_env=key, suites="plain", stdout=told, stderr=StringIO(),
    )  # fmt: skip
    report = json.loads(told.getvalue())
    assert (report["outcome"], report["runner"]) == ("ok", "endpoint")
    assert report["metrics"]["accuracy"]["n"] == len(REVIEWS)


def target_on(server: Server, task: Task, key: str, **more: Any) -> TargetModel:
    options = {"model": server.model, "max_tokens": MOST_TOKENS}
    return TargetModel.objects.create(
        task=task, name=f"real{TargetModel.objects.count()}", adapter="openai_chat",
        url=server.url, secret_env=key, options=options | more,
    )  # fmt: skip


def test_a_person_writes_against_it(server: Server, key: str, figures: Figures) -> None:
    round = RoundFactory(task__code="nli")
    context = ContextFactory(round=round)
    target = target_on(server, round.task, key)
    RoundTarget.objects.create(round=round, target=target, position=0)
    labels = round.task.config.get_component("label").values
    client = signed_in(UserFactory())
    texts = ("The shop opened at nine.", "The shop is blue.", "The shop stayed shut all day.")
    ours = []
    for text in texts:
        client.post("/t/nli/write/", open_form(client, text=text), **HTMX)
        attempt = Attempt.objects.latest("pk")
        example = Example.objects.filter(inputs__hypothesis=text).first()
        ours.append(example.target_outputs.get().output["label"] if example else None)
        assert example or attempt.failure in ("unmatched", "unfinished")

    def ask(number: int) -> str | None:
        messages = get_endpoint(target).build_visible_messages(
            {**context.fields, "hypothesis": texts[number]}
        )
        return label_by_hand(server, messages, "label", labels)

    count_same(figures, server, "live target", ours, ask)


def test_a_battle_shows_what_both_write(server: Server, key: str, figures: Figures) -> None:
    task = battle_arena()
    Contestant.objects.all().delete()
    for instructions in ("You are brief.", "You are kind."):
        target = target_on(server, task, key, instructions=instructions)
        Contestant.objects.create(task=task, name=target.name, target=target, is_live=True)
    prompt = "Which city is the capital of France?"
    turn = send(task, get_annotator(UserFactory()), prompt)
    assert turn.state == "done", turn.failure
    replies = list(turn.replies.order_by("side"))
    endpoints = [get_endpoint(turn.battle.get_contestant(one.side).target) for one in replies]
    asked = [
        one.build_visible_messages({"messages": build_messages([], prompt)}) for one in endpoints
    ]
    texts = [one.text for one in replies]
    count_same(figures, server, "battle", texts, lambda n: text_by_hand(server, asked[n]))
    heard: list[str] = []
    endpoints[0].write({"messages": build_messages([], prompt)}, heard.append, deadline_seconds=600)
    assert len(heard) > 1  # it was streamed


def test_it_judges_free_answers(server: Server, key: str, figures: Figures) -> None:
    task = judged_answers(authors=2)
    target = target_on(server, task, key)
    prompt = "Is the answer correct?"
    judge = create_judge(
        task=task, target=target, name="j", prompt=prompt, most_calls=99, actor=None
    )  # fmt: skip
    ask_llm_judge(judge.pk)
    judge.refresh_from_db()
    fields = (*task.config.model_fields, ANSWER_FIELD)
    reads = build_chooser_endpoint(target, fields, output="verdict", labels=VERDICTS, prompt=prompt)
    said = dict(judge.verdicts.values_list("key", "is_correct"))
    judged = [one.question for one in find_judged_answers(task)]

    def ask(number: int) -> bool | None:
        messages = reads.build_visible_messages(judged[number].inputs)
        label = label_by_hand(server, messages, "verdict", VERDICTS)
        return None if label is None else label == VERDICTS[0]

    asked = judge.report["calls"]  # after five failures in a row it is left alone
    assert asked == len(judged) or judge.error
    ours = [said.get(one.key) for one in judged[:asked]]
    count_same(figures, server, "judge", ours, ask)


def test_a_conversation_goes_on(server: Server, key: str, figures: Figures) -> None:
    round, client = opened()
    scripted = round.round_targets.get().target
    target = target_on(server, round.task, key)
    RoundTarget.objects.filter(round=round).update(target=target)
    scripted.delete()
    for words in ("When did the mill close?", "Are you sure?"):
        assert say(client, words).status_code == 302  # without a script it waits
    sent = {name: hidden(client, name) for name in ("attempt_key", "assignment")}
    ok(client.post(TALK_URL, {**sent, "talk": 3, "how": "wrong"}, **HTMX))
    example = Example.objects.get()
    talk = example.inputs["talk"]
    reads, passage = get_endpoint(target), example.context.fields
    texts = [talk[1]["text"], example.target_outputs.get().output["reply"]]

    def ask(number: int) -> str:
        fields = {**passage, "talk": talk[: 2 * number + 1], "how": "wrong"}
        return text_by_hand(server, reads.build_visible_messages(fields))

    count_same(figures, server, "conversation", texts, ask)


@contextmanager
def suppress_unmatched() -> Iterator[None]:
    """Pass over an answer that is no label."""
    try:
        yield
    except EndpointError as error:
        if error.reason not in ("unmatched", "unfinished"):
            raise


TOO_LONG = "word " * 3000


def test_a_text_that_is_too_long_is_told_apart(server: Server, key: str) -> None:
    """transformers' server has no such limit: it writes on beyond what its model has learnt."""
    if server.name not in ("llama_cpp", "vllm"):
        pytest.skip("it refuses no length")
    task = TaskFactory(code="sentiment")
    endpoint = get_endpoint(target_on(server, task, key))
    (field,) = task.config.model_fields
    with pytest.raises(EndpointError) as caught:
        endpoint.predict([{field: TOO_LONG}], deadline_seconds=60)
    assert caught.value.reason == "too_long"


def test_wrong_settings_are_not_the_texts_fault(server: Server, key: str) -> None:
    task = TaskFactory(code="sentiment")
    (field,) = task.config.model_fields

    def reason(target: TargetModel) -> str:
        with pytest.raises(EndpointError) as caught:
            get_endpoint(target).predict([{field: "Fine."}], deadline_seconds=60)
        return str(caught.value.reason)

    if server.name != "llama_cpp":  # which answers by whatever name
        assert reason(target_on(server, task, key, model="nobody")) == "misconfigured"
    if server.key:
        assert reason(target_on(server, task, "")) in ("misconfigured", "down")  # it answers 500
        target = target_on(server, task, "PATH")  # holds something else
        assert reason(target) == "misconfigured"


@pytest.mark.parametrize("wrong", ["", "/v1/chat/completions"])
def test_an_address_may_be_cut_or_whole(server: Server, key: str, wrong: str) -> None:
    task = TaskFactory(code="sentiment")
    target = target_on(server, task, key)
    target.url = server.url.removesuffix("/v1") + wrong
    (field,) = task.config.model_fields
    # An answer of no label is one, too: the server was found.
    with suppress_unmatched():
        get_endpoint(target).predict([{field: REVIEWS[0]}], deadline_seconds=600)
