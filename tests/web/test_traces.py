"""Traces come in, are judged, and go back under the same ids. Texts are made up."""

import json
import re
from base64 import b64encode
from io import StringIO

import pyarrow.parquet as pq
import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation.models import Example
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.jobs import build_dataset
from tasks.models import Round, Task, TaskMember
from tests.support.factories import UserFactory, importing
from tests.support.field_walk import released
from tests.support.judging import judge
from tests.support.traces import FIXTURES, TRACE, TRAJECTORY, TURNS, batch, chat, otel
from tests.support.writing import signed_in
from validation.models import Consensus, QueueItem, Validation
from validation.statistics.report import build_task_report

JUDGE = "/t/agent/judge/"
LABELS = ("--judge", "--labels", "right,wrong")


def run(path, tool, *args):
    """Import a file into the task `agent`."""
    out, errors = StringIO(), StringIO()
    given = ["--from", tool, "--task", "agent", "--create", *args]
    try:
        call_command("import_examples", str(path), *importing(given), stdout=out, stderr=errors)
    except CommandError as error:
        raise CommandError(f"{errors.getvalue()}{error}") from None
    return out.getvalue().splitlines()


def write(tmp_path, value, name="traces.jsonl"):
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def agent(db, tmp_path):
    """A task with two traces, each to be judged by two people."""
    answers = [{"role": "assistant", "content": text} for text in ("17 degrees.", "Cold.")]
    spans = [
        otel(number, number, chat([{"role": "user", "content": "Warm?"}], [answer]),
             traceId=f"{number:032x}")
        for number, answer in enumerate(answers, 1)
    ]  # fmt: skip
    run(write(tmp_path, batch(*spans)), "opentelemetry", *LABELS, "--policy", "n-equal:2")
    return Task.objects.get(code="agent")


def judges(task, count):
    """People who judge the task, signed in."""
    people = UserFactory.create_batch(count)
    for person in people:
        TaskMember.objects.create(task=task, user=person, role="judge")
    return [signed_in(person) for person in people]


def test_a_trace_is_a_conversation_once(db):
    path = FIXTURES / "opentelemetry.jsonl"
    assert run(path, "opentelemetry", *LABELS)[-1].startswith("1 new")
    example = Example.objects.get()
    assert example.context.fields["trace"] == [{"role": "system", "text": "Be brief."}, *TURNS]
    assert len(example.metadata["spans"]) == 5
    task = Task.objects.get(code="agent")
    assert [(one.name, one.type) for one in task.config.context] == [("trace", "chat")]
    assert [label.value for label in task.config.get_labels("label")] == ["right", "wrong"]
    assert QueueItem.objects.count() == 1
    assert run(path, "opentelemetry", "--judge")[-1].startswith("0 new, 1 known")
    assert Example.objects.count() == 1


def test_a_trace_that_changed_is_named(db, tmp_path):
    run(write(tmp_path, TRAJECTORY, "trajectory.json"), "atif", *LABELS)
    longer = {**TRAJECTORY, "steps": TRAJECTORY["steps"][:-1]}
    with pytest.raises(CommandError, match="uid s1 names another example"):
        run(write(tmp_path, longer, "trajectory.json"), "atif", "--judge")


def test_nothing_is_stored_of_a_file_with_a_wrong_trace(db, tmp_path):
    good = otel(1, 1, chat([{"role": "user", "content": "Warm?"}], [{"content": "Yes."}]))
    orphan = {**good, "traceId": f"{7:032x}", "spanId": f"{7:016x}", "parentSpanId": f"{9:016x}"}
    path = write(tmp_path, batch(good, orphan))
    with pytest.raises(CommandError, match=r"traces\.jsonl:2: span 0{15}7: its parent"):
        run(path, "opentelemetry", *LABELS)
    assert not Task.objects.filter(code="agent").exists()
    told = run(path, "opentelemetry", *LABELS, "--skip-bad")
    assert "1 bad" in told[-1]
    assert [*Example.objects.values_list("uid", flat=True)] == [TRACE]


def test_nothing_is_stored_of_a_file_with_10_000_spans_in_a_trace(db, tmp_path):
    good = chat([{"role": "user", "content": "Warm?"}], [{"content": "Yes."}])
    many = [otel(number, number, good) for number in range(1, 10_001)]
    path = write(tmp_path, batch(otel(1, 1, good, traceId=f"{7:032x}"), *many))
    with pytest.raises(CommandError, match=rf"span {2001:016x}: .*10,000 spans"):
        run(path, "opentelemetry", *LABELS)
    assert not Task.objects.filter(code="agent").exists()
    assert not Example.objects.exists()


def test_whole_traces_are_judged_and_go_back_to_their_ids(agent):
    for client in judges(agent, 2):
        for _ in range(2):
            assert "Warm?" in client.get(JUDGE).text
            assert judge(client, "label:right", JUDGE).status_code == 200
    assert [*Consensus.objects.values_list("label", flat=True)] == ["right", "right"]
    lines = exported(agent, "opentelemetry")
    assert len(lines) == 2
    logs = lines[0]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {log["traceId"] for log in logs} == {f"{1:032x}"}
    named = [{one["key"]: one["value"]["stringValue"] for one in log["attributes"]} for log in logs]
    assert [one["gen_ai.evaluation.name"] for one in named] == [
        "label_consensus", "label", "label"]  # fmt: skip
    assert {one["gen_ai.evaluation.score.label"] for one in named} == {"right"}
    scores = exported(agent, "langfuse")
    assert len({score["id"] for score in scores}) == len(scores) == 6
    assert scores == exported(agent, "langfuse")
    assert scores[0] | {"id": ""} == {
        "id": "", "traceId": f"{1:032x}", "name": "label_consensus", "value": "right",
        "dataType": "CATEGORICAL"}  # fmt: skip
    (first, _) = exported(agent, "inspect_logs")
    assert (first["uuid"], first["label"], len(first["votes"])) == (f"{1:032x}", "right", 2)
    # No name of a judge leaves.
    text = json.dumps([lines, scores, first])
    for vote in Validation.objects.select_related("validator"):
        assert vote.validator.pseudonym not in text


def exported(task, tool):
    out = StringIO()
    call_command("export_examples", task=task.code, round=1, to=tool, stdout=out, stderr=StringIO())
    return [json.loads(line) for line in out.getvalue().splitlines()]


# Step by step


@pytest.fixture
def by_step(db):
    """A trace with steps in the turns 3 to 5, which two people decide."""
    run(
        FIXTURES / "opentelemetry.jsonl", "opentelemetry", *LABELS, "--policy", "n-equal:2",
        "--steps", "fine,bad",
    )  # fmt: skip
    return Task.objects.get(code="agent")


def vote(client, whole="label:right", **steps):
    """Answer what the page shows, with labels by turn (`t3="fine"`)."""
    page = client.get(JUDGE)
    found = re.search(r'name="example" value="([^"]+)"', page.text)
    assert found, page.text
    chosen = {f"step-{name[1:]}": label for name, label in steps.items()}
    return client.post(JUDGE, {"example": found[1], "answer": whole, **chosen}, follow=True)


ALL_FINE = {"t3": "fine", "t4": "fine", "t5": "fine"}


def test_the_page_has_a_choice_for_each_step(by_step):
    (client,) = judges(by_step, 1)
    page = client.get(JUDGE)
    names = re.findall(r'name="(step-\d+)"\s+value="(\w+)"', page.text)
    assert names == [
        (f"step-{turn}", label) for turn in (3, 4, 5) for label in ("fine", "bad")
    ]  # fmt: skip
    assert page.text.count('form="judge-form"') == 6
    assert "look_up" in page.text


def test_a_step_without_an_answer_is_named_and_the_others_stay(by_step):
    (client,) = judges(by_step, 1)
    page = vote(client, t3="fine")
    assert page.status_code == 422
    assert 'href="#id_step-4"' in page.text
    assert "4, 5" in page.text
    assert re.search(r'name="step-3"\s+value="fine"[^>]*checked', page.text)
    assert not Validation.objects.exists()
    wrong = vote(client, **{**ALL_FINE, "t4": "superb"})
    assert wrong.status_code == 422


def test_a_vote_has_an_answer_for_each_step_and_each_is_decided(by_step):
    first, second, third = judges(by_step, 3)
    assert vote(first, **ALL_FINE).status_code == 200
    # Judging is blind: who judges next sees no choice of the first, and no model's name.
    page = second.get(JUDGE).text
    steps = re.findall(r'<input[^>]*name="step-[^>]*>', page)
    assert len(steps) == 6
    assert not any("checked" in step for step in steps)
    example = Example.objects.get()
    assert example.metadata["models"] == ["m-1"]
    for hidden in ("m-1", *example.metadata["spans"], Validation.objects.get().validator.pseudonym):
        assert hidden not in page
    assert vote(second, **{**ALL_FINE, "t4": "bad"}).status_code == 200
    stored = [one.metadata["steps"] for one in Validation.objects.order_by("pk")]
    fine = {"3": "fine", "4": "fine", "5": "fine"}
    assert stored == [fine, fine | {"4": "bad"}]
    consensus = Consensus.objects.get()
    # The whole is decided, and one step is not.
    assert (consensus.state, consensus.label, consensus.still_needed) == ("decided", "right", 1)
    assert vote(third, "label:wrong", **{**ALL_FINE, "t4": "bad"}).status_code == 200
    consensus.refresh_from_db()
    assert (consensus.label, consensus.still_needed) == ("right", 0)
    assert QueueItem.objects.get().still_needed == 0
    numbers = build_task_report(list(by_step.rounds.all()), code="agent")["rounds"][0]
    assert (numbers["steps_judged"], numbers["steps_decided"], numbers["step_votes"]) == (3, 3, 9)
    assert numbers["step_unanimous_share"]["value"] == pytest.approx(2 / 3)


def test_a_step_that_fails_is_named_by_its_span_on_the_owners_page(by_step):
    for client in judges(by_step, 2):
        vote(client, **{**ALL_FINE, "t4": "bad"})
    owner = UserFactory()
    TaskMember.objects.create(task=by_step, user=owner, role="owner")
    example = Example.objects.get()
    page = signed_in(owner).get(f"/own/agent/review/{example.uuid}/").text
    rows = re.findall(r'<tr data-step="(\d+)">(.*?)</tr>', page, re.DOTALL)
    assert [number for number, _ in rows] == ["3", "4", "5"]
    for number, row in rows:
        assert f"<code>{example.metadata['spans'][int(number) - 1]}</code>" in row
        label = "bad" if number == "4" else "fine"
        assert f"{label}: 2" in row
        assert f"<td>{label}</td>" in row


def test_who_cannot_tell_or_flags_answers_about_no_step(by_step):
    first, second = judges(by_step, 2)
    assert vote(first, "verdict:cannot_tell").status_code == 200
    assert Validation.objects.get().metadata == {}
    page = second.get(JUDGE)
    uuid = re.search(r'name="example" value="([^"]+)"', page.text)[1]
    sent = {"example": uuid, "flag_reason": "unclear"}
    assert second.post(f"{JUDGE}flag/", sent, follow=True).status_code == 200
    assert Validation.objects.count() == 2


def test_a_repeated_vote_counts_once_and_other_steps_are_no_repetition(by_step):
    (client,) = judges(by_step, 1)
    uuid = re.search(r'name="example" value="([^"]+)"', client.get(JUDGE).text)[1]
    sent = {"example": uuid, "answer": "label:right", "step-3": "fine", "step-4": "fine"}
    for _ in range(2):
        assert client.post(JUDGE, {**sent, "step-5": "fine"}, follow=True).status_code == 200
    assert client.post(JUDGE, {**sent, "step-5": "bad"}).status_code == 409
    assert Validation.objects.get().metadata["steps"]["5"] == "fine"


def test_steps_go_back_under_the_ids_of_their_spans(by_step):
    for client in judges(by_step, 2):
        vote(client, **ALL_FINE)
    example = Example.objects.get()
    spans = example.metadata["spans"]
    (line,) = exported(by_step, "opentelemetry")
    logs = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    by_span = {}
    for log in logs:
        values = {one["key"]: one["value"]["stringValue"] for one in log["attributes"]}
        if "spanId" in log:
            by_span.setdefault(log["spanId"], []).append(values["gen_ai.evaluation.score.label"])
    assert by_span == {span: ["fine"] * 3 for span in spans[2:]}
    scores = exported(by_step, "langfuse")
    assert sum("observationId" in score for score in scores) == 9
    (record,) = exported(by_step, "atif")
    assert [(step["turn"], step["label"]) for step in record["steps"]] == [
        (3, "fine"), (4, "fine"), (5, "fine")]  # fmt: skip


def test_a_collector_reads_the_votes(by_step):
    """OpenTelemetry's own message takes each field, and a key that it doesn't know is an error."""
    json_format = pytest.importorskip("google.protobuf.json_format")
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    for client in judges(by_step, 2):
        vote(client, **ALL_FINE)
    (line,) = exported(by_step, "opentelemetry")
    logs = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    written = [(log["traceId"], log.get("spanId", "")) for log in logs]
    # OTLP has ids in hexadecimal, and protobuf's JSON has bytes in base64.
    for log in logs:
        for key in {"traceId", "spanId"} & log.keys():
            log[key] = b64encode(bytes.fromhex(log[key])).decode()
    request = json_format.ParseDict(line, service.ExportLogsServiceRequest())
    records = request.resource_logs[0].scope_logs[0].log_records
    assert [(one.trace_id.hex(), one.span_id.hex()) for one in records] == written
    assert {one.event_name for one in records} == {"gen_ai.evaluation.result"}
    # The whole, then three steps, each with its decision and two votes.
    assert len(records) == 12
    example = Example.objects.get()
    assert {one.span_id.hex() for one in records} == {"", *example.metadata["spans"][2:]}


def test_votes_with_steps_come_back_with_an_export(by_step, tmp_path):
    for client in judges(by_step, 2):
        vote(client, **ALL_FINE)
    path = tmp_path / "argilla.json"
    with path.open("w") as out:
        call_command("export_examples", task="agent", round=1, to="argilla", stdout=out)
    run(path, "argilla", "--round", "2")
    votes = Validation.objects.filter(example__round__number=2)
    assert [one.metadata["steps"] for one in votes] == [{"3": "fine", "4": "fine", "5": "fine"}] * 2
    assert Consensus.objects.get(example__round__number=2).still_needed == 0


def test_a_release_has_the_votes_on_each_step_and_no_ids_of_people(by_step, settings, tmp_path):
    import mlcroissant

    settings.MEDIA_ROOT = tmp_path
    for number, client in enumerate(judges(by_step, 3)):
        vote(client, **ALL_FINE | ({"t4": "bad"} if number else {}))
    round = by_step.rounds.get()
    round.state = "closed"
    round.save()
    row, card = released(round)
    assert [(step["turn"], step["consensus"]) for step in row["steps"]] == [
        (3, "fine"), (4, "bad"), (5, "fine")]  # fmt: skip
    given = row["steps"][1]["judgements"]
    assert [(label, kind) for label, kind, _ in given] == [
        ("fine", "user"), ("bad", "user"), ("bad", "user")]  # fmt: skip
    # Each person has the same pseudonym here as in the votes on the whole.
    assert [name for *_, name in given] == [name for *_, name in row["validations"]]
    for one in Validation.objects.select_related("validator"):
        assert one.validator.pseudonym not in json.dumps(row)
    assert "`steps`" in card
    assert count_validation_numbers(round) == 5
    dataset = round.datasets.get()
    folder = tmp_path / f"releases/{dataset}"
    table = pq.read_table(folder / "train.parquet").to_pylist()
    assert table[0]["steps"][1]["consensus"] == "bad"
    assert table[0]["steps"][1]["judgements"] == given
    (record,) = mlcroissant.Dataset(jsonld=folder / "croissant.json").records("train")
    metadata = json.loads((folder / "croissant.json").read_text())
    # All agree on the whole, so of its alpha nothing is known.
    assert len(metadata["rai:dataAnnotationAnalysis"]) == 2
    assert [step["train/steps/turn"] for step in record["train/steps"]] == [3, 4, 5]


def count_validation_numbers(round):
    """How many numbers about judging the card of the round's release has."""
    with round.datasets.get().files.get(name="benchmark_card.json").file.open() as file:
        return len(json.loads(file.read())["benchmark_card"]["methodology"]["validation"])


def steps_on_page(client):
    """A label for each step of the example that the page shows, as the first of two questions."""
    page = client.get(JUDGE)
    assert page.text.count('class="numbered"') == 2
    names = re.findall(r'name="step-(\d+)"', page.text)
    return {f"t{number}": "fine" for number in names}


def read_rows(dataset):
    """The rows of the training split by the id of the trace."""
    with dataset.files.get(name="train.jsonl").file.open() as file:
        rows = [json.loads(line) for line in file]
    return {row["uid"]: row for row in rows}


def test_later_versions_keep_the_steps_when_the_task_asks_no_more(by_step, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    run(write(tmp_path, TRAJECTORY, "trajectory.json"), "atif", "--judge")
    first, second = judges(by_step, 2)
    for _ in range(2):
        for client in (first, second):
            vote(client, **steps_on_page(client))
    round = by_step.rounds.get()
    round.state = "closed"
    round.save()
    dataset = request_release(round=round, options=Options(), actor=None)
    build_dataset(dataset.pk)
    before = read_rows(dataset)
    assert [len(row["steps"]) for row in before.values()] == [3, 3]
    Example.objects.filter(uid="s1").update(retracted_at=timezone.now())
    config = yaml.safe_load(by_step.config_text)
    del config["validation"]["steps"]
    by_step.config_text = json.dumps(config)
    by_step.save()
    again = request_release(round=Round.objects.get(), options=Options(), actor=None)
    build_dataset(again.pk)
    again.refresh_from_db()
    assert again.state == "done"
    after = read_rows(again)
    assert "steps" not in after.pop("s1")
    assert [row["steps"] for row in after.values()] == [before[uid]["steps"] for uid in after]


def test_steps_in_the_api(by_step, settings):
    by_step.config_text += "programs: {judge: true}\n"
    by_step.save()
    (client,) = judges(by_step, 1)
    item = client.post("/api/v1/tasks/agent/judging/next/").json()
    assert item["steps"]["turns"] == ["3", "4", "5"]
    assert item["steps"]["labels"] == ["fine", "bad"]
    url = f"/api/v1/examples/{item['example']}/validations/"
    chosen = {"3": "fine", "4": "bad", "5": "fine"}
    for steps in ({}, {"3": "fine"}, {**chosen, "2": "fine"}, {**chosen, "3": "superb"}):
        sent = {"vote": "label:right", "steps": steps}
        assert client.post(url, sent, content_type="application/json").status_code in (400, 422)
    sent = {"vote": "label:right", "steps": chosen}
    assert client.post(url, sent, content_type="application/json").status_code == 201
    listed = "/api/v1/tasks/agent/rounds/1/steps/"
    assert client.get(listed).status_code == 403
    owner = UserFactory()
    TaskMember.objects.create(task=by_step, user=owner, role="viewer")
    (described,) = signed_in(owner).get(listed).json()["results"]
    assert described["uid"] == Example.objects.get().uid
    assert [step["votes"] for step in described["steps"]] == [{"fine": 1}, {"bad": 1}, {"fine": 1}]
    assert described["steps"][0]["span"] == Example.objects.get().metadata["spans"][2]
    assert signed_in(UserFactory()).get(listed).status_code in (403, 404)
    numbers = signed_in(owner).get("/api/v1/tasks/agent/statistics/").json()["rounds"][0]
    assert numbers["step_votes"] == 3
