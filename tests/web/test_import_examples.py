"""manage.py import_examples: history as it is, all of a file or nothing, each uid once."""

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from annotation.models import Example, TargetOutput
from core.accounts.models import Annotator, LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from dynabench.manage.activity import count_activity
from evaluation.dataset_releases.authorship import find_model_names
from evaluation.models import Dataset
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.models import Context, Round, TargetModel, Task, TaskMember
from tasks.rounds.forms import RoundForm
from tasks.rounds.services import plan_round
from tasks.rounds.states import set_round_state
from tests.support.arenas import make_arena
from tests.support.factories import UserFactory, importing
from tests.support.judging import judge
from tests.support.policies import rederive
from validation.consensus.consensus import Policy, Vote
from validation.consensus.vote_draws import DrawRule
from validation.decisions.services import override_consensus, withdraw_override
from validation.judging.queue_services import fill_queue
from validation.models import Consensus, QueueItem, RoundPolicy, Validation
from validation.statistics.report import build_task_report

ROOT = Path(__file__).parents[2]


def row(uid="u1", **changes):
    labels = changes.pop("labels", ("positive", "positive", "positive", "mixed", "negative"))
    return {
        "task": "mood",
        "round": 1,
        "uid": uid,
        "context": {},
        "input": {"text": f"The soup of {uid} was warm."},
        "author": None,
        "author_label": None,
        "model_prediction": {"model": "m0", "label": "negative", "probs": {"negative": 0.75}},
        "model_wrong": None,
        "validations": [{"worker": f"w{n}", "label": label} for n, label in enumerate(labels)],
        "metadata": {"split": "dev"},
        **changes,
    }


def run(file, *args):
    """What the command said: (last line of stdout, stderr)."""
    out, err = StringIO(), StringIO()
    call_command("import_examples", str(file), *importing(args), stdout=out, stderr=err)
    return out.getvalue().splitlines()[-1], err.getvalue()


@pytest.fixture
def write(tmp_path):
    def write(*rows, name="rows.jsonl"):
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows]
        (tmp_path / name).write_bytes(b"\n".join(lines) + b"\n")
        return tmp_path / name

    return write


def counts():
    models = (Task, Round, Context, Annotator, TargetModel, Example, TargetOutput, Validation)
    return [model.objects.count() for model in (*models, Consensus, RoundPolicy, LogEntry)]


def test_an_arena_takes_no_examples(db, write):
    make_arena("mood")
    before = counts()
    with pytest.raises(CommandError, match="import_comparisons"):
        run(write(row()))
    assert counts() == before


def test_a_row_becomes_history(db, write):
    assert run(write(row()), "--create") == ("1 new, 0 known before.", "1 lines read\n")
    example = Example.objects.select_related("round__task").get()
    assert example.uid == "u1"
    assert (str(example.round), example.round.state) == ("mood round 1", "closed")
    assert example.inputs == {"text": "The soup of u1 was warm."}
    assert (example.annotator, example.outcome) == (None, "unknown")
    assert example.metadata == {"split": "dev"}
    assert example.context.fields == {}
    assert example.context.is_retired
    output = example.target_outputs.get()
    assert (output.output, output.prob, output.fooled) == (
        {"label": "negative"},
        {"negative": 0.75},
        None,
    )
    assert (output.target.name, output.target.adapter) == ("mood_m0", "imported")
    assert output.version.digest == "imported"
    votes = example.validations.order_by("pk")
    assert [vote.label for vote in votes] == [
        "positive", "positive", "positive", "mixed", "negative",
    ]  # fmt: skip
    assert {vote.is_imported for vote in votes} == {True}
    worker = votes[0].validator
    assert (worker.pseudonym, worker.source) == ("mood:w0", "import")
    said = example.consensus
    assert (said.state, said.label, said.votes, said.still_needed) == ("decided", "positive", 5, 0)
    assert (said.is_verified, said.is_validated_error) == (True, True)
    assert said.decided_at


def test_the_author_and_the_authors_label(db, write):
    rows = [
        row("u1", author="w9", author_label="positive", model_wrong=True),
        row("u2", author="w9", author_label="negative"),
        row("u3", author="w9", author_label="neutral", model_prediction=None),
    ]
    run(write(*rows), "--create")
    first, second, third = Example.objects.order_by("uid").select_related("annotator", "consensus")
    assert {e.annotator.pseudonym for e in (first, second, third)} == {"mood:w9"}
    assert [e.outcome for e in (first, second, third)] == ["fooled", "not_fooled", "no_model"]
    assert first.inputs["label"] == "positive"
    assert first.target_outputs.get().fooled is True
    assert first.consensus.is_validated_error
    assert (second.consensus.is_verified, second.consensus.is_validated_error) == (False, False)
    assert not third.target_outputs.exists()


def test_each_person_has_one_vote_the_last(db, write):
    votes = [
        {"worker": None, "label": "mixed"},
        {"worker": None, "label": "mixed"},
        {"worker": "w1", "label": "mixed"},
        {"worker": "w1", "label": "positive"},
        {"worker": "w1", "verdict": "flagged"},
    ]
    run(write(row(author="w1", validations=votes)), "--create")
    stored = Validation.objects.order_by("pk").values_list("label", "verdict")
    assert [*stored] == [("mixed", ""), ("mixed", ""), ("", "flagged")]
    assert Validation.objects.filter(validator=None).count() == 2
    assert Validation.objects.filter(validator__pseudonym="mood:w1").count() == 1
    assert Consensus.objects.get().votes == 3


def test_the_same_text_by_the_same_author_under_two_uids(db, write):
    same = {"author": "w1", "input": {"text": "Same."}}
    run(write(row("u1", **same), row("u2", **same)), "--create")
    assert Example.objects.count() == 2
    assert Context.objects.count() == 1


def test_twice_is_once(db, write):
    file = write(row("u1"), row("u2"), row("u1"))
    assert run(file, "--create")[0] == "2 new, 1 known before."
    before = counts()
    assert run(file, "--create")[0] == "0 new, 3 known before."
    assert counts() == before
    assert run(write(row("u3")))[0] == "1 new, 0 known before."
    assert Round.objects.count() == 1


def test_another_example_under_a_known_uid_is_bad(db, write):
    run(write(row("u1")), "--create")
    with pytest.raises(CommandError):
        run(write(row("u1", input={"text": "Another."})))
    file = write(row("u1", input={"text": "Another."}), row("u2"))
    said, told = run(file, "--skip-bad")
    assert said == f"1 new, 0 known before, 1 bad in {file}.bad."
    assert f"{file}:1: uid u1 " in told
    assert run(file, "--round", 2)[0] == "2 new, 0 known before."


def test_a_bad_line_stores_nothing_and_every_one_is_named(db, write):
    file = write(row("u1"), b"{", row("u2", round=-1), b"", row("u3"))
    err, arguments = StringIO(), importing(["--create"])
    before = counts()
    with pytest.raises(CommandError, match=r"^2 "):
        call_command("import_examples", str(file), *arguments, stderr=err, stdout=StringIO())
    first, second = err.getvalue().splitlines()
    assert first.startswith(f"{file}:2: not JSON")
    assert second.startswith(f"{file}:3: round: ")
    assert counts() == before


def test_bad_lines_are_collected(db, write):
    file = write(row("u1"), b'{"task": "\xff"}', row("u2"))
    said, told = run(file, "--create", "--skip-bad")
    assert said == f"2 new, 0 known before, 1 bad in {file}.bad."
    assert f"{file}:2: byte 11 is not UTF-8" in told
    assert Path(f"{file}.bad").read_bytes() == b'{"task": "\xff"}\n'


def test_gzip_and_other_scripts(db, tmp_path):
    texts = ["Суп был тёплым.", "スープは温かい", "الحساء دافئ", "🍲👩🏽‍🍳"]
    lines = [json.dumps(row(f"ü{n}", input={"text": t})) for n, t in enumerate(texts)]
    file = tmp_path / "rows.bin"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    run(file, "--create")
    stored = Example.objects.order_by("uid").values_list("inputs__text", flat=True)
    assert list(stored) == texts
    file.write_bytes(gzip.compress("\n".join(lines).encode())[:-20])
    with pytest.raises(CommandError, match="Damaged gzip"):
        run(file, "--task", "other", "--create")
    assert not Task.objects.filter(code="other").exists()


def test_a_made_task_has_the_labels_that_were_seen(db, write):
    run(write(row(context={"prompt": "P"})), "--create", "--policy", "at-least:3")
    task = Task.objects.get()
    assert (task.name, task.is_visible) == ("Mood", False)
    assert task.members.get(role="owner").user.email == "importer@example.com"
    assert task.config.get_component("label").values == ("mixed", "negative", "positive")
    assert task.config.model_fields == ("prompt", "text")


def test_an_unknown_task_is_named(db, write, nli):
    with pytest.raises(CommandError, match=r"'mood'. Tasks: nli\. .*--create"):
        run(write(row()))
    with pytest.raises(CommandError, match="'Not a code'"):
        run(write(row()), "--task", "Not a code", "--create")


def test_into_an_official_task(write, sentiment):
    run(write(row(author_label="positive"), row("u2", round=0)), "--task", "sentiment")
    assert Example.objects.get(uid="u1").round == sentiment
    assert Example.objects.get(uid="u1").inputs["label"] == "positive"
    assert Round.objects.get(number=0).state == "closed"
    with pytest.raises(CommandError, match="--round: '-1'"):
        run(write(row()), "--round=-1")


def test_a_span_keeps_its_place(write, qa):
    passage = "Ada built the mill in 1840."
    where = {"context": {"passage": passage}, "input": {"question": "When?"}, "validations": []}
    said = {"author_label": "1840", "model_prediction": None}
    right, wrong = {"answer_start": 22}, {"answer_start": 3}
    rows = [row("u1", **where, **said, metadata=right), row("u2", **where, **said, metadata=wrong)]
    run(write(*rows), "--task", "qa")
    first, second = Example.objects.order_by("uid")
    assert first.inputs["answer"] == {"text": "1840", "start": 22, "end": 26}
    assert second.inputs["answer"] == "1840"


def test_policies_decide(db, write):
    split = row("u1", labels=["positive", "positive", "negative"])
    file = write(split, row("u2", labels=["negative"] * 3))
    for policy, decided in [("n-equal:3", 1), ("plurality", 2), ("strict", 2), ("at-least:2", 2)]:
        code = f"by-{policy.split(':')[0]}"
        run(file, "--task", code, "--create", "--policy", policy)
        rows = Consensus.objects.filter(round__task__code=code)
        assert rows.filter(state="decided").count() == decided
        judging = RoundPolicy.objects.get(round__task__code=code)
        assert Policy(**judging.policy) == Policy.parse(policy)
    with pytest.raises(CommandError, match="'most'"):
        run(file, "--policy", "most")


def test_dawid_skene_decides_over_the_whole_round(db, write):
    rows = [row(f"u{n}", labels=["positive"] * 4 + ["negative"]) for n in range(30)]
    rows += [row(f"v{n}", labels=["negative"] * 5) for n in range(30)]
    run(write(*rows), "--create", "--policy", "dawid-skene:0.9")
    assert Consensus.objects.filter(state="decided").count() == 60
    assert Consensus.objects.filter(label="positive").count() == 30
    assert RoundPolicy.objects.get().fitted_model.votes == 300
    owner, example = UserFactory(), Example.objects.first()
    override_consensus(example=example, owner=owner, choice=Vote(label="negative"))
    withdraw_override(example=example, owner=owner)
    assert Consensus.objects.get(example=example).label == "positive"


def test_an_import_keeps_the_sample_of_the_tasks_file(db, write):
    run(write(row()), "--create")
    task = Task.objects.get()
    judge = TargetModel.objects.create(task=task, name="judge", url="http://j.test")
    data = read_yaml(task.config_text).data
    data["validation"] = {**data.get("validation", {}), "sample": {"judge": "judge"}}
    task.config_text = dump_yaml(data)
    task.save()
    planned = Round.objects.create(task=task, number=2)
    run(write(row("u2", round=2)), "--policy", "at-least:3")
    assert planned.round_policy.draw_rule == DrawRule(judge.pk)
    assert planned.round_policy.policy["needed"] == 3


def test_history_can_be_decided_by_another_policy(db, write):
    file = write(row("u1"), row("u2", labels=["positive"] * 5))
    run(file, "--create", "--policy", "at-least:3")
    assert Consensus.objects.filter(label="positive").count() == 2
    run(file, "--policy", "at-least:5")
    assert list(Consensus.objects.filter(state="decided").values_list("example__uid")) == [("u2",)]
    run(write(row("u3")))
    assert not Consensus.objects.get(example__uid="u3").label


def test_the_sites_rules_decide_the_same(db, write):
    """What the import stored is what a change of policy on the site would store."""
    p, n, m = "positive", "negative", "mixed"
    patterns = [(p, p, p), (p, p, n), (p, n, m), (n, n, n), (p,), ()]
    answers = [(None, None), (p, n), (n, n), (None, n), (m, None)]
    rows = [
        row(
            f"{i}-{j}",
            labels=labels,
            author_label=author,
            model_prediction=model and {"model": "m0", "label": model, "probs": None},
        )
        for i, labels in enumerate(patterns)
        for j, (author, model) in enumerate(answers)
    ]
    said = ("pk", "state", "label", "votes", "still_needed", "is_verified", "is_validated_error")
    for policy in ("at-least:2", "n-equal:3", "strict", "plurality"):
        code = policy.split(":")[0]
        run(write(*rows), "--task", code, "--create", "--policy", policy)
        round = Round.objects.get(task__code=code)
        stored = list(Consensus.objects.filter(round=round).order_by("pk").values(*said))
        assert rederive(round=round, policy=Policy.parse(policy)) == 0
        assert list(Consensus.objects.filter(round=round).order_by("pk").values(*said)) == stored
        assert len(stored) == 25


def test_the_sites_own_votes_are_not_decided_anew(write, sentiment, alice, bob):
    run(write(row("u1")), "--task", "sentiment")
    example = Example.objects.get()
    Validation.objects.create(example=example, validator=get_annotator(bob), label="positive")
    with pytest.raises(CommandError, match=r"^sentiment round 1 .*--policy"):
        run(write(row("u2")), "--task", "sentiment", "--policy", "n-equal:5")
    assert run(write(row("u2")), "--task", "sentiment")[0] == "1 new, 0 known before."


def test_a_released_round_takes_nothing(write, sentiment):
    Round.objects.update(state="released")
    with pytest.raises(CommandError, match=r"^sentiment round 1 is released"):
        run(write(row()), "--task", "sentiment")


def test_history_is_not_handed_out_to_be_judged(db, write):
    run(write(row("u1", validations=[]), row("u2", labels=["a", "b"])), "--create")
    assert fill_queue(round=Round.objects.get()) == 0


SYNTHETIC = """
import json, sys
for n in range(int(sys.argv[1])):
    print(json.dumps({"task": "many", "round": 1, "uid": str(n), "context": {},
        "input": {"text": "a" * 30}, "author": f"a{n % 50}", "author_label": "x",
        "model_prediction": {"model": "m", "label": "y", "probs": None}, "model_wrong": True,
        "validations": [{"worker": f"w{n % 70 + i}", "label": "x"} for i in range(3)],
        "metadata": {}}))
"""


def test_a_killed_import_leaves_nothing(db, tmp_path):
    """A process of its own on a copy of the tests' database, killed in the middle."""
    env = {**os.environ, "DYNABENCH_HOME": str(tmp_path)}
    env.pop("DATABASE_URL", None)
    UserFactory(is_superuser=True)
    (tmp_path / "db.sqlite3").write_bytes(connection.connection.serialize())
    feed = tmp_path / "feed"
    os.mkfifo(feed)
    with subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "import_examples", str(feed), "--create"],
        env=env,
        stderr=subprocess.DEVNULL,
    ) as job:
        rows = subprocess.run(
            [sys.executable, "-c", SYNTHETIC, "3500"], capture_output=True, check=True
        ).stdout
        with feed.open("wb") as pipe:
            pipe.write(rows)
            pipe.flush()
            job.send_signal(signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
    with sqlite3.connect(tmp_path / "db.sqlite3") as database:
        for table in ("tasks_task", "annotation_example", "validation_validation"):
            assert database.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)


def test_a_task_that_is_made_needs_an_owner(db, write):
    file = write(row())
    for more in ([], ["--owner", "nobody@example.com"]):
        with pytest.raises(CommandError, match="--owner"):
            call_command("import_examples", str(file), "--create", *more, stderr=StringIO())
    assert not Task.objects.exists()
    boss = UserFactory(is_superuser=True)
    call_command("import_examples", str(file), "--create", stderr=StringIO(), stdout=StringIO())
    assert Task.objects.get().members.get().user == boss


def test_history_is_nobodys_work_of_today(db, write):
    run(write(row("u1", author="a"), row("u2", author="b")), "--create")
    found = count_activity(Round.objects.get())
    assert (found.people, list(found.days)) == (0, [])


def test_a_card_names_the_models_of_imported_rows(db, write):
    run(write(row()), "--create")
    dataset = Dataset(round=Round.objects.get(), version=1)
    assert find_model_names(dataset) == TargetModel.objects.get().name


def test_retired_contexts_are_not_copied_in_silence(db, write):
    run(write(row(context={"prompt": "P"})), "--create")
    first, owner = Round.objects.get(), Task.objects.get().members.get().user
    form = RoundForm({"rule": "majority", "contexts_of": 1}, task=first.task)
    assert set(form.errors) == {"contexts_of"}
    with pytest.raises(Refused):
        plan_round(task=first.task, actor=owner, fields={}, contexts_of=first)
    assert Round.objects.count() == 1


def test_an_imported_round_without_context_fields_opens(db, write):
    run(write(row()), "--create")
    opened = set_round_state(round=Round.objects.get(), state="open", actor=None)
    assert (opened.state, opened.contexts.get().is_retired) == ("open", False)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "code", "rows", "votes"),
    [
        ("anli-dev-sample", "nli", 900, 2073),
        ("train/nli-cad-dev", "nli", 1000, 0),
        ("train/hate-hatemojibuild-dev", "hate-speech", 591, 0),
        ("train/qa-aqa-bert-dev", "qa", 3390, 0),
    ],
)
def test_the_other_files(db, data, name, code, rows, votes):
    file = data / f"{name}.jsonl.gz"
    assert run(file, "--create")[0] == f"{rows:,} new, 0 known before."
    assert Example.objects.filter(round__task__code=code).count() == rows
    assert Validation.objects.count() == votes
    assert Task.objects.get().config.model_fields


def test_new_rows_of_the_site_get_ids_of_their_own(write, sentiment, alice):
    """Reserved ids are not given out again."""
    run(write(row("u1"), row("u2")), "--task", "sentiment")
    context = Context.objects.first()
    example = Example.objects.create(
        round=sentiment,
        context=context,
        annotator=get_annotator(alice),
        inputs={},
        digest="d",
        outcome="no_model",
    )
    assert example.pk > max(Example.objects.exclude(pk=example.pk).values_list("pk", flat=True))
    assert connection.vendor in ("sqlite", "postgresql")


def judge_once(client, answer):
    """One judgement of the task `mood` on its page; gives the example."""
    assert judge(client, answer, "/t/mood/judge/").status_code == 200
    return Validation.objects.latest("pk").example


@pytest.mark.parametrize("answer", [None, {"model": "m0", "label": "so so", "probs": None}])
def test_plain_rows_are_judged_by_labels(db, write, as_alice, alice, answer):
    rows = [row(f"u{n}", validations=[], model_prediction=answer) for n in range(3)]
    options = ("--task", "mood", "--create", "--judge", "--labels", "good,so so,bad")
    assert run(write(*rows), *options)[0] == "3 new, 0 known before."
    task = Task.objects.get()
    assert not task.is_visible
    labels = [label.value for label in task.config.get_labels("label")]
    assert labels == ["good", "so so", "bad"]
    TaskMember.objects.create(task=Task.objects.get(), user=alice, role="annotator")
    for _ in range(3):
        judge_once(as_alice, "label:so so")
    report = build_task_report(list(task.rounds.all()), code="mood")["rounds"][0]
    assert (report["collected"], report["judged"]) == (3, 3)
    assert run(write(*rows), *options)[0] == "0 new, 3 known before."


def test_free_answers_of_models_are_judged_right_or_wrong(db, write, as_alice, alice):
    rows = [row(f"u{n}", validations=[]) for n in range(2)]
    run(write(*rows), "--task", "mood", "--create", "--judge", "--policy", "n-equal:1")
    TaskMember.objects.create(task=Task.objects.get(), user=alice, role="annotator")
    wrong = judge_once(as_alice, "verdict:incorrect").consensus
    right = judge_once(as_alice, "verdict:correct").consensus
    assert (wrong.is_verified, wrong.is_validated_error) == (True, True)
    assert (right.is_verified, right.is_validated_error) == (True, False)


def test_what_nobody_could_judge_is_refused(db, write, sentiment):
    bare = row(validations=[], model_prediction=None)
    with pytest.raises(CommandError, match="author_label"):
        run(write(bare), "--task", "mood", "--create", "--judge")
    with pytest.raises(CommandError, match="--labels"):
        run(write(bare), "--task", "mood", "--create", "--judge", "--labels", "good,good")
    with pytest.raises(CommandError, match="--labels"):
        run(write(bare), "--task", "sentiment", "--judge", "--labels", "good,bad")
    assert not Example.objects.exists()


def test_votes_that_came_along_count(db, write):
    rows = [row("u1", labels=["a", "b"]), row("u2", labels=["a", "a", "a"])]
    run(write(*rows), "--task", "mood", "--create", "--judge", "--policy", "n-equal:3")
    item = QueueItem.objects.get()
    assert (item.example.uid, item.still_needed) == ("u1", 2)


def votes_for(*labels):
    return [{"worker": f"w{n}", "label": label} for n, label in enumerate(labels)]


def test_votes_that_look_alike_are_for_one_label(db, write):
    votes = votes_for("positive", "positive ", "\u00a0positive")
    rows = [row("u1", validations=votes), row("u2", validations=votes_for("negative", 1, "1"))]
    run(write(*rows), "--create", "--policy", "at-least:3")
    assert {*Validation.objects.values_list("label", flat=True)} == {"positive", "negative", "1"}
    assert Consensus.objects.get(example__uid="u1").label == "positive"


def test_votes_have_the_exact_text_of_the_tasks_labels(db, write):
    run(write(row()), "--create")
    votes = votes_for("Positive", "POSITIVE ", "ｐｏｓｉｔｉｖｅ", "neither")
    about = {"author_label": "MIXED", "model_prediction": None, "validations": votes}
    run(write(row("u2", **about)), "--round", "2")
    example = Example.objects.get(uid="u2")
    assert example.inputs["label"] == "mixed"
    found = [vote.label for vote in example.validations.order_by("pk")]
    assert found == ["positive", "positive", "positive", "neither"]


def test_answers_that_count_as_one_label_make_no_task(db, write):
    votes = votes_for("Positive", "positive", "negative")
    with pytest.raises(CommandError, match="'Positive' and 'positive'"):
        run(write(row(model_prediction=None, validations=votes)), "--create")
    assert not Task.objects.exists()
    named = ("--judge", "--labels", "positive,negative")
    run(write(row(model_prediction=None, validations=votes)), "--create", *named)
    assert sorted(Validation.objects.values_list("label", flat=True)) == [
        *("negative", "positive", "positive"),
    ]


def test_imported_texts_are_stored_in_nfc(db, write):
    given = {"text": "cafe\u0301", "mark": {"text": "bar", "start": 6, "end": 9}}
    run(write(row(context={"passage": "cafe\u0301 bar"}, input=given)), "--create")
    example = Example.objects.select_related("context").get()
    assert example.context.fields == {"passage": "café bar"}
    assert example.inputs == {"text": "café", "mark": {"text": "bar", "start": 5, "end": 8}}
