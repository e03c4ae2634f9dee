"""LLM judges of criteria: calibrated against people, shown to owners, and scores of stored sets."""

import gzip
import json

import pytest
from django.core.files.base import ContentFile
from sklearn.metrics import cohen_kappa_score

from annotation.models import Example, TargetOutput
from core.accounts.models import Annotator
from evaluation.contract import SetRow
from evaluation.jobs import ask_llm_judge
from evaluation.judges.llm_judges.forms import CRITERIA_PROMPT, make_default_prompt
from evaluation.judges.llm_judges.selectors import find_judged_answers, read_calibration
from evaluation.judges.llm_judges.services import create_judge
from evaluation.models import LlmScore, LlmVerdict
from evaluation.scoring.recompute import compute_set_digest
from evaluation.scoring.recompute import read_set_rows as read_label_lines
from evaluation.test_sets.parsing import InvalidLines, SetFile
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_round_version
from leaderboard.snapshots.evidence import iterate_label_lines
from tasks.config.loading import load_config
from tasks.models import TargetVersion, TaskMember
from tests.support.chat_server import chat_server
from tests.support.criteria import CRITERIA, build_text, judge, number, open_task, write
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import UserFactory
from tests.support.judged_answers import chat_target
from tests.support.writing import ok, signed_in
from validation.models import Consensus, Validation

AUTHORS = 40


def meets_what_it_names(messages):
    """A criterion is met if the answer repeats its last word; but not in answers with a 7."""
    text = messages[1]["content"]
    answer = text.partition("<answer_to_judge>\n")[2].partition("\n</")[0]
    criterion = text.partition("<criterion_to_check>\n")[2].partition("\n</")[0]
    is_met = criterion.split()[-1] in answer
    return "met" if is_met != ("7" in answer) else "not met"


@pytest.fixture
def server():
    with chat_server({"chat-1": meets_what_it_names}) as server:
        yield server


@pytest.fixture
def advice(db, settings, tmp_path):
    settings.MEDIA_ROOT, settings.TARGET_PRIVATE_HOSTS = tmp_path, ["127.0.0.0/8"]
    return open_task()


def judged_examples(round):
    """Two answers to each author, whose criteria people have decided."""
    people = Annotator.objects.bulk_create(Annotator(pseudonym=f"w{n}") for n in range(AUTHORS))
    target = round.round_targets.get().target
    version = TargetVersion.objects.create(target=target, digest="d")
    for place in range(2 * AUTHORS):
        example = Example.objects.create(
            round=round, context=round.contexts.get(), annotator=people[place % AUTHORS],
            digest=str(place), outcome="fooled",
            inputs={"question": f"Question {place}?", "checks": CRITERIA},
        )  # fmt: skip
        has_dose = place % 3 == 0
        TargetOutput.objects.create(
            example=example, target=target, version=version, seconds=0.1, fooled=True, score=0,
            output={"reply": f"{place}: take a dose" if has_dose else f"{place}: rest"},
            judgements=["not_met"] * 3,
        )  # fmt: skip
        Consensus.objects.create(
            example=example, round=round, state="decided", votes=2, still_needed=0,
            verdict="correct" if has_dose else "incorrect", decided_by="votes",
            judgements=["met" if has_dose else "not_met", "not_met", None],
        )  # fmt: skip


def make_judge(task, server):
    target = chat_target(task, server.url, model="chat-1", structured="never")
    return create_judge(
        task=task, target=target, name="first", prompt="Check it.", most_calls=1000, actor=None
    )


def test_its_agreement_is_measured_criterion_by_criterion(advice, server):
    round, _ = advice
    judged_examples(round)
    first = make_judge(round.task, server)
    ask_llm_judge(first.pk)
    first.refresh_from_db()
    assert (first.state, first.error) == ("done", "")
    judged = list(find_judged_answers(round.task))
    assert len(judged) == 2 * 2 * AUTHORS  # the third criterion of each is not decided
    kept = [one for one in judged if one.split == "calibrate"]
    by_model = dict(LlmVerdict.objects.values_list("key", "is_correct"))
    said = [(one.is_correct, by_model[one.question.key]) for one in kept]
    found = read_calibration(first)
    assert found.n == len(kept) >= 50
    assert found.is_calibrated
    assert found.kappa == pytest.approx(cohen_kappa_score(*zip(*said, strict=True)))
    assert found.low < found.kappa < 1
    assert make_default_prompt(round.task.config) == CRITERIA_PROMPT


def test_it_judges_before_people_do_for_owners_alone_and_never_votes(advice, server, alice):
    round, owner = advice
    author = signed_in(alice)
    write(author)
    example = Example.objects.get()
    author.post(f"/attempt/{example.uuid}/answer/", number("not_met", "met", "not_met"))
    first = make_judge(round.task, server)
    ask_llm_judge(first.pk)
    assert LlmVerdict.objects.count() == 3
    assert not Validation.objects.exists()
    assert not Consensus.objects.exists()
    address = f"/own/advice/review/{example.uuid}/"
    page = ok(signed_in(owner).get(address))
    (column,) = page.context["judge_columns"]
    assert (column.name, len(column.words)) == ("first", 3)
    assert 'id="prejudged"' in page.text
    expert = UserFactory()
    TaskMember.objects.create(task=round.task, user=expert, role="expert")
    assert 'id="prejudged"' not in signed_in(expert).get(address).text
    bob = signed_in(UserFactory())
    assert "first" not in ok(bob.get("/t/advice/judge/")).text.partition("<main")[2]
    item = bob.post("/api/v1/tasks/advice/judging/next/", content_type="application/json")
    assert "prejudge" not in item.text
    ok(judge(bob, example, "met", "met", "met"))
    assert Consensus.objects.get().votes == 1
    assert 'id="asks-criteria"' in ok(signed_in(owner).get("/own/advice/llm-judges/")).text


def run_of(task, version):
    model = accepted_model(task, name=f"m{version.pk}", kind="predictions", is_published=True)
    answers = ["a dose and a doctor", "a dose", None, "an antibiotic"]
    lines = [json.dumps({"uid": f"u{n}", "answer": a, "prob": None}) for n, a in enumerate(answers)]
    run = queued_run(model, version, state="done", outcome="ok")
    run.predictions.save("p", ContentFile(gzip.compress("\n".join(lines).encode())))
    return run


def test_a_run_is_scored_by_the_criteria_of_each_row(advice, server):
    round, _ = advice
    rows = [
        SetRow(f"u{n}", {"topic": "A cold.", "question": f"Q{n}"}, ("Rest.",), {}, tuple(CRITERIA))
        for n in range(4)
    ]
    hidden_fields = {"may_leave": True, "answers_public": False}
    secret = set_version(round.task, "secret", rows=rows, **hidden_fields)
    version = set_version(round.task, "open", rows=rows, may_leave=True)
    run, hidden = run_of(round.task, version), run_of(round.task, secret)
    first = make_judge(round.task, server)
    ask_llm_judge(first.pk)
    score = LlmScore.objects.get()  # criteria of a set with secret answers don't leave
    assert score.run == run != hidden
    # All 5 points, 3 of them, no answer, and -5 that count as 0.
    assert score.value == pytest.approx((1 + 0.6 + 0 + 0) / 4)
    assert score.low < score.value < score.high


def test_sets_of_rounds_keep_the_criteria_with_the_right_answers(advice):
    round, _ = advice
    judged_examples(round)
    Consensus.objects.update(is_verified=True)
    example = Example.objects.first()
    Validation.objects.create(
        example=example, validator=Annotator.objects.first(), verdict="incorrect",
        metadata={"correction": "Take a dose, and see a doctor."},
    )  # fmt: skip
    round.state = "closed"
    round.save()
    version = make_round_version(round)
    (row,) = read_set_rows(version)  # of the others nobody knows a right answer
    assert row.gold == ("Take a dose, and see a doctor.",)
    assert list(row.criteria) == CRITERIA
    assert "checks" not in row.inputs
    with version.inputs.open("rb") as file:
        assert b"antibiotic" not in gzip.decompress(file.read())
    assert compute_set_digest([row]) == version.sha256
    assert compute_set_digest(read_label_lines(iterate_label_lines(version))) == version.sha256


def test_a_file_of_examples_needs_criteria(advice, tmp_path):
    good = {"topic": "A cold.", "question": "Q?", "reply": "Rest.", "checks": ["Names a dose"]}
    path = tmp_path / "set.jsonl"
    config = load_config(build_text())
    path.write_text(json.dumps(good))
    (row,) = SetFile(path, "set.jsonl", config)
    assert row.criteria == ({"text": "Names a dose", "points": 1},)
    for wrong in (None, ["a", "A"], "a", [f"c{place}" for place in range(51)]):
        path.write_text(json.dumps(good | {"checks": wrong}))
        with pytest.raises(InvalidLines, match="checks"):
            list(SetFile(path, "set.jsonl", config))
