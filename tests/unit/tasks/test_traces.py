"""Traces of agents become conversations, or the error names the span. All texts are made up."""

import json
import re
import shutil
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.components import Component
from tasks.config.field_types.chat import MAX_CONTEXT_TURNS
from tasks.config.values import find_value_errors
from tasks.formats import FORMATS
from tasks.formats.reading import iter_record_lines
from tasks.formats.traces import MAX_SPANS
from tasks.line_files import FileError
from tests.support.traces import (
    ANSWER,
    FIXTURES,
    QUESTION,
    RESULT,
    SPANS,
    TOOL,
    TRACE,
    TRAJECTORY,
    TURNS,
    any_value,
    attributes,
    batch,
    chat,
    otel,
)


def write(folder, *values, name="traces.jsonl"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def read_lines(path, layout):
    return [*iter_record_lines(path, FORMATS[layout])]


def read_row(path, layout):
    (line,) = read_lines(path, layout)
    assert not line.error, line.error
    assert not find_value_errors(
        Component(name="trace", type="chat"), line.row["context"]["trace"], {}
    )
    assert len(line.row["metadata"]["spans"]) == len(line.row["context"]["trace"])
    return line.row


def refused(path, layout, why):
    """Nothing was read, and the only reason fits the pattern."""
    (line,) = read_lines(path, layout)
    assert line.row is None
    assert re.search(why, line.error), line.error


# OpenTelemetry


def test_a_file_of_the_python_exporter_is_one_conversation():
    row = read_row(FIXTURES / "opentelemetry.jsonl", "opentelemetry")
    assert row["context"]["trace"] == [{"role": "system", "text": "Be brief."}, *TURNS]
    assert row["metadata"]["models"] == ["m-1"]
    assert len({*row["metadata"]["spans"]}) == 4


def test_spans_in_any_order_and_in_several_lines(tmp_path):
    one = read_row(write(tmp_path, batch(*SPANS)), "opentelemetry")
    assert one["context"]["trace"] == TURNS
    assert one["uid"] == TRACE
    # The agent's span begins with the question, and repeats the answer.
    assert one["metadata"]["spans"] == [f"{number:016x}" for number in (1, 2, 3, 4)]
    parts = [batch(span) for span in reversed(SPANS)]
    assert read_row(write(tmp_path, *parts, parts[0]), "opentelemetry") == one
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(batch(*SPANS), indent=2))
    assert read_row(pretty, "opentelemetry") == one


@given(st.permutations(SPANS))
def test_the_order_of_the_file_does_not_matter(tmp_path_factory, spans):
    path = write(tmp_path_factory.mktemp("traces"), batch(*spans))
    assert read_row(path, "opentelemetry")["context"]["trace"] == TURNS


def test_structured_attributes_are_read(tmp_path):
    values = chat([], []) | {"gen_ai.input.messages": QUESTION, "gen_ai.output.messages": [ANSWER]}
    row = read_row(write(tmp_path, batch(otel(1, 1, values))), "opentelemetry")
    assert row["context"]["trace"] == [TURNS[0], TURNS[3]]


def test_events_of_the_older_form_are_read_from_spans_and_logs(tmp_path):
    asked = {"role": "user", "content": "How warm is it in Oslo?"}
    told = {"message": {"role": "assistant", "content": "17 degrees."}, "index": "0"}
    values = {"gen_ai.operation.name": "chat"}
    events = [
        {"name": "gen_ai.choice", "timeUnixNano": "3", "attributes": attributes(
            {"gen_ai.event.content": json.dumps(told)})},
        {"name": "gen_ai.user.message", "timeUnixNano": "2", "attributes": attributes(asked)},
    ]  # fmt: skip
    row = read_row(write(tmp_path, batch(otel(1, 1, values, events=events))), "opentelemetry")
    assert row["context"]["trace"] == [TURNS[0], TURNS[3]]
    logs = [
        {"traceId": TRACE, "spanId": f"{1:016x}", "timeUnixNano": str(time),
         "body": any_value(body), **named}
        for time, body, named in (
            (2, asked, {"eventName": "gen_ai.user.message"}),
            (3, told, {"attributes": attributes({"event.name": "gen_ai.choice"})}),
        )
    ]  # fmt: skip
    write(tmp_path / "both", batch(otel(1, 1, values)), name="spans.jsonl")
    write(tmp_path / "both", {"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]})
    assert read_row(tmp_path / "both", "opentelemetry")["context"] == row["context"]
    oldest = [
        {"name": "gen_ai.content.prompt", "timeUnixNano": "1", "attributes": attributes(
            {"gen_ai.prompt": json.dumps([asked])})},
        {"name": "gen_ai.content.completion", "timeUnixNano": "2", "attributes": attributes(
            {"gen_ai.completion": json.dumps([told["message"]])})},
    ]  # fmt: skip
    path = write(tmp_path, batch(otel(1, 1, values, events=oldest)))
    assert read_row(path, "opentelemetry")["context"] == row["context"]


def test_numbered_attributes_are_read(tmp_path):
    values = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "How warm is it in Oslo?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "look_up",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Oslo"}',
    }
    row = read_row(write(tmp_path, batch(otel(1, 1, values))), "opentelemetry")
    assert row["context"]["trace"] == TURNS[:2]


def test_other_traces_are_no_examples(tmp_path):
    web = otel(1, 1, {"http.request.method": "GET"})
    (line,) = read_lines(write(tmp_path, batch(web)), "opentelemetry")
    assert line.row is None
    assert not line.error


def test_a_parent_in_another_service_may_be_missing(tmp_path):
    span = otel(2, 1, chat(QUESTION, [ANSWER]), parentSpanId=f"{1:016x}", flags=0x300)
    assert read_row(write(tmp_path, batch(span)), "opentelemetry")["uid"] == TRACE


SPAN_1 = f"span {1:016x}"
ORPHAN = otel(1, 1, chat(QUESTION, [ANSWER]), parentSpanId=f"{9:016x}")
CIRCLE = [
    otel(1, 1, chat(QUESTION, [ANSWER]), parentSpanId=f"{2:016x}"),
    otel(2, 1, {}, parentSpanId=f"{1:016x}"),
]
STRANGE = chat(QUESTION, [{"role": "oracle", "parts": []}])
UNKNOWN_CALL = chat([RESULT], [ANSWER])


@pytest.mark.parametrize(
    ("spans", "why"),
    [
        ([ORPHAN], f"{SPAN_1}: its parent {9:016x} isn't in the file"),
        (CIRCLE, "its parents form a circle"),
        ([otel(1, 1, {"gen_ai.operation.name": "chat"})], f"{SPAN_1}: its messages are missing"),
        ([otel(1, 1, chat(QUESTION, []))], f"{SPAN_1}: the model's answer is missing"),
        ([otel(1, 1, STRANGE)], f"{SPAN_1}: a message has the role"),
        ([otel(1, 1, UNKNOWN_CALL)], f"{SPAN_1}: a tool's result belongs to a call c1"),
        ([otel(1, 1, chat(QUESTION, [7]))], f"{SPAN_1}: a message is 7"),
        ([otel(1, 1, {}, startTimeUnixNano="soon")], f"{SPAN_1}: `startTimeUnixNano`"),
        ([otel(1, 1, {}, attributes={"a": 1})], f"{SPAN_1}: `attributes` is no list"),
        ([otel(1, 1, {}), otel(1, 2, {})], f"{SPAN_1}: two spans"),
        ([otel(1, 1, {}, spanId=7)], "a span: `spanId` is 7"),
        ([7], "a span is 7"),
    ],
)  # fmt: skip
def test_wrong_spans_are_named(tmp_path, spans, why):
    refused(write(tmp_path, batch(*spans)), "opentelemetry", why)


def test_limits_name_the_span_behind_them(tmp_path):
    many = [otel(number, 1, {}) for number in range(1, 10_001)]
    many[0] = otel(1, 1, chat(QUESTION, [ANSWER]))
    (line,) = read_lines(write(tmp_path, batch(*many)), "opentelemetry")
    assert line.error.startswith(f"span {MAX_SPANS + 1:016x}: ")
    assert "10,000" in line.error
    answer = [{"role": "assistant", "content": "Yes."}]
    long = [
        otel(number, number, chat([{"role": "user", "content": f"Is {number} odd?"}], answer))
        for number in range(1, MAX_CONTEXT_TURNS // 2 + 2)
    ]
    (line,) = read_lines(write(tmp_path, batch(*long)), "opentelemetry")
    assert line.error.startswith(f"span {MAX_CONTEXT_TURNS // 2:016x}: ")
    assert str(MAX_CONTEXT_TURNS) in line.error


def test_a_list_of_batches_is_read_like_lines(tmp_path):
    lines = read_row(write(tmp_path / "a", batch(*SPANS[:2]), batch(*SPANS[2:])), "opentelemetry")
    path = write(tmp_path / "b", [batch(*SPANS[:2]), batch(*SPANS[2:])])
    assert read_row(path, "opentelemetry") == lines


@pytest.mark.parametrize("layout", ["opentelemetry", "langfuse", "atif"])
def test_brackets_within_brackets_take_no_memory(tmp_path, layout):
    path = tmp_path / "traces.json"
    path.write_text("[" * 20_000)
    tracemalloc.start()
    with pytest.raises(FileError, match="100 brackets"):
        read_lines(path, layout)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20


def test_a_file_in_which_a_span_stands_is_named(tmp_path):
    write(tmp_path / "in", batch(otel(2, 1, chat(QUESTION, [ANSWER]))), name="a.jsonl")
    write(tmp_path / "in", batch(ORPHAN), name="b.jsonl")
    (line,) = read_lines(tmp_path / "in", "opentelemetry")
    assert line.position == "a.jsonl:1"
    assert line.error.startswith(f"{SPAN_1} in b.jsonl: its parent")


def test_broken_json_and_terminal_output(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(batch(*SPANS))[:-3])
    with pytest.raises(FileError, match="No JSON"):
        read_lines(path, "opentelemetry")
    coloured = TOOL | {"gen_ai.tool.call.result": "\x1b[31m17\x1b[0m °C"}
    spans = [SPANS[1], otel(3, 12, coloured, parentSpanId=SPANS[1]["spanId"])]
    spans[0] = spans[0] | {"parentSpanId": ""}
    row = read_row(write(tmp_path, batch(*spans)), "opentelemetry")
    assert row["context"]["trace"][-1]["text"] == "17 °C"


# Langfuse


def observed(number, kind, start, given, answer, **more):
    return {
        "id": f"o{number}", "traceId": "t1", "type": kind, "name": "look_up",
        "startTime": f"2026-01-01T00:00:{start:02}.000Z", "input": given, "output": answer, **more,
    }  # fmt: skip


ASKED = [{"role": "user", "content": "How warm is it in Oslo?"}]
CALLED = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function",
     "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}},
]}  # fmt: skip
RETURNED = {"role": "tool", "tool_call_id": "c1", "content": "17 °C"}
OBSERVATIONS = [
    observed(1, "AGENT", 1, {"x": 1}, None, endTime="2026-01-01T00:00:09.000Z"),
    observed(2, "GENERATION", 2, ASKED, CALLED, parentObservationId="o1", model="model-1"),
    observed(3, "TOOL", 3, {"city": "Oslo"}, "17 °C", parentObservationId="o1"),
    observed(4, "GENERATION", 4, {"messages": [*ASKED, CALLED, RETURNED]},
             {"role": "assistant", "content": "17 degrees."}, parentObservationId="o1"),
]  # fmt: skip


def test_every_export_of_langfuse_is_the_same_conversation(tmp_path):
    trace = {"id": "t1", "name": "weather", "input": ASKED, "output": "17 degrees."}
    full = {**trace, "observations": OBSERVATIONS}
    files = {
        "one.json": full,
        "list.json": [full],
        "page.json": {"data": [full], "meta": {"page": 1}},
        "pair.json": {"trace": trace, "observations": OBSERVATIONS},
    }
    for name, value in files.items():
        row = read_row(write(tmp_path, value, name=name), "langfuse")
        assert row["uid"] == "t1"
        assert row["context"]["trace"] == TURNS, name
        assert row["metadata"]["spans"] == ["o2", "o2", "o3", "o4"]
    path = write(tmp_path, trace, *OBSERVATIONS, name="lines.jsonl")
    assert read_row(path, "langfuse")["context"]["trace"] == TURNS
    path = write(tmp_path, {**trace, "input": "Warm?"}, name="plain.json")
    row = read_row(path, "langfuse")
    assert row["context"]["trace"] == [{"role": "user", "text": "Warm?"}, TURNS[3]]
    assert row["metadata"]["spans"] == ["t1", "t1"]


@pytest.mark.parametrize(
    ("observations", "why"),
    [
        ([observed(1, "GENERATION", 1, ASKED, "Yes.", parentObservationId="o9")],
         "observation o1: its parent o9"),
        ([observed(1, "GENERATION", 1, ASKED, "Yes.", parentObservationId="o2"),
          observed(2, "SPAN", 1, None, None, parentObservationId="o1")], "form a circle"),
        ([observed(1, "GENERATION", 1, None, None)], "observation o1: its messages are missing"),
        ([observed(1, 7, 1, ASKED, "Yes.")], "observation o1: `type`"),
        ([observed(1, "GENERATION", 1, ASKED, "Yes.", startTime="soon")], "o1: `startTime`"),
        (["o1"], "observation o1: only its id"),
        ([observed(1, "GENERATION", 1, ASKED, "Yes.", traceId="t2")], "o1: it belongs to"),
        ({}, "trace t1: `observations`"),
    ],
)  # fmt: skip
def test_wrong_observations_are_named(tmp_path, observations, why):
    path = write(tmp_path, {"id": "t1", "observations": observations}, name="one.json")
    refused(path, "langfuse", why)


# ATIF


def test_a_trajectory_is_a_conversation_with_the_ids_of_its_steps(tmp_path):
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(TRAJECTORY, indent=1))
    row = read_row(path, "atif")
    assert (row["uid"], row["context"]["trace"]) == ("s1", TURNS)
    assert row["metadata"] == {"spans": ["1", "2", "2", "3"], "models": ["model-1"]}
    # A folder of Harbor also has other files.
    (tmp_path / "job" / "agent").mkdir(parents=True)
    shutil.copy(path, tmp_path / "job" / "agent" / "trajectory.json")
    (tmp_path / "job" / "result.json").write_text("{}")
    assert read_row(tmp_path / "job", "atif") == row


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"step_id": "two", "source": "agent", "message": ""}, "step 4.step_id"),
        ({"step_id": 3, "source": "agent", "message": ""}, "step 3: two steps"),
        ({"step_id": 4, "source": "robot", "message": ""}, "step 4: the source"),
        ({"step_id": 4, "source": "agent"}, "step 4: `message` is missing"),
        ({"step_id": 4, "source": "agent", "message": 7}, "step 4: the content is 7"),
        ({"step_id": 4, "source": "agent", "message": "", "observation": {
            "results": [{"source_call_id": "c9", "content": ""}]}}, "step 4: .*call c9"),
        (7, "step 4 is a number"),
    ],
)  # fmt: skip
def test_wrong_steps_are_named(tmp_path, step, why):
    path = write(tmp_path, {**TRAJECTORY, "steps": [*TRAJECTORY["steps"], step]})
    refused(path, "atif", why)
    refused(write(tmp_path, {**TRAJECTORY, "schema_version": "2"}), "atif", "schema_version")
    refused(write(tmp_path, {**TRAJECTORY, "steps": [step] * 10_000}), "atif", "step 2001: ")


# Inspect


def write_log(path):
    """Write a log with Inspect itself."""
    inspect_log = pytest.importorskip("inspect_ai.log")
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageTool,
        ChatMessageUser,
        ContentReasoning,
        ContentText,
    )
    from inspect_ai.tool import ToolCall

    sample = inspect_log.EvalSample(
        id=1, epoch=1, uuid="u1", input="How warm is it in Oslo?", target="17",
        messages=[
            ChatMessageUser(id="m1", content="How warm is it in Oslo?"),
            ChatMessageAssistant(
                id="m2", model="model-1", content=[ContentReasoning(reasoning="Hm.")],
                tool_calls=[ToolCall(id="c1", function="look_up", arguments={"city": "Oslo"})]),
            ChatMessageTool(id="m3", tool_call_id="c1", function="look_up", content="17 °C"),
            ChatMessageAssistant(id="m4", content=[ContentText(text="17 degrees.")]),
        ],
    )  # fmt: skip
    spec = inspect_log.EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="weather", model="model-1",
        dataset=inspect_log.EvalDataset(name="weather"), config=inspect_log.EvalConfig(),
    )  # fmt: skip
    log = inspect_log.EvalLog(status="success", eval=spec, samples=[sample])
    inspect_log.write_eval_log(log, str(path))


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_a_log_that_inspect_wrote_is_a_conversation(tmp_path, ending):
    write_log(tmp_path / f"log.{ending}")
    row = read_row(tmp_path / f"log.{ending}", "inspect_logs")
    assert (row["uid"], row["context"]["trace"]) == ("u1", TURNS)
    assert row["metadata"] == {"spans": ["m1", "m2", "m3", "m4"], "models": ["model-1"]}
    assert read_row(tmp_path, "inspect_logs") == row


def test_damaged_logs_and_wrong_messages(tmp_path):
    path = tmp_path / "log.eval"
    write_log(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileError, match="archive"):
        read_lines(path, "inspect_logs")
    sample = {"id": 1, "epoch": 1, "messages": [{"role": "user", "id": "m1"}]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    refused(path, "inspect_logs", "message m1: `content`")
    sample["messages"] = [7]
    refused(write(tmp_path, {"samples": [sample]}, name="log.json"), "inspect_logs", "message 1 is")


# Whatever a file holds


def places(value, path=()):
    """The path of every value inside a value."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def replaced(value, path, new):
    """A copy of the value with another one at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


ODD_VALUES = st.sampled_from(
    [None, True, 7, -1.5, "", "\x1b[0m", "7", "[1]", "{}", [], [7], {}, {"role": 7}, [[]], "user"]
)
WHOLE_FILES = {
    "opentelemetry": batch(*SPANS),
    "langfuse": {"id": "t1", "input": ASKED, "observations": OBSERVATIONS},
    "atif": TRAJECTORY,
    "inspect_logs": {"samples": [{"id": 1, "epoch": 1, "uuid": "u1", "messages": [
        {**message, "id": f"m{number}"}
        for number, message in enumerate([*ASKED, {**CALLED, "content": []}, RETURNED])
    ]}]},
}  # fmt: skip


@pytest.mark.parametrize("layout", WHOLE_FILES)
@given(data=st.data())
def test_a_wrong_value_anywhere_is_read_or_refused(tmp_path_factory, layout, data):
    whole = WHOLE_FILES[layout]
    path = data.draw(st.sampled_from(list(places(whole))))
    value = replaced(whole, path, data.draw(ODD_VALUES))
    file = write(tmp_path_factory.mktemp("odd"), value)
    try:
        lines = read_lines(file, layout)
    except FileError:
        return
    for line in lines:
        assert (
            line.error
            or line.row is None
            or not find_value_errors(
                Component(name="trace", type="chat"), line.row["context"]["trace"], {}
            )
        )
        if line.row:
            assert line.row["uid"]
