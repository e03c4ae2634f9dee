"""Langfuse's traces with their observations, as its API, its pages and its exports write them.

Formats: `TraceWithFullDetails` of Langfuse's public API (`GET /api/public/traces/ID`), a list of
these, `{"trace": …, "observations": […]}`, and lines of observations with `traceId`.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from io import BufferedReader
from typing import Any

from tasks.formats.base import Format, Item, LeftOutCounts, Numbered, Part, Record
from tasks.formats.json_values import make_object_reader
from tasks.formats.trace_judgements import iter_judgements, make_id
from tasks.formats.trace_messages import MessageReader, format_result
from tasks.formats.traces import FIELD, Span, build_trace_row
from tasks.line_files import BadRow

TITLE = "Langfuse"
EXPORT_ADVICE = "JSON or JSON lines"
MODEL_TYPE, TOOL_TYPE = "GENERATION", "TOOL"
MISSING_ADVICE = "Record what models read and write, and choose an export with inputs and outputs"
_read_objects = make_object_reader({"": "", "item": ""})


def read_records(file: BufferedReader) -> Iterator[Numbered]:
    """Yield traces and observations; a page of the API has many. Raises FileError."""
    number = 0
    for _, text in _read_objects(file):
        value = json.loads(text)
        # A page of the API.
        data = value.get("data") if isinstance(value, dict) else None
        for record in data if isinstance(data, list) else [value]:
            number += 1
            yield number, json.dumps(record).encode()


def find_trace_id(record: Record) -> str:
    """Return the id of the trace that a record is, or to which it belongs."""
    if isinstance(record.get("trace"), dict):
        return str(record["trace"]["id"])
    return str(record.get("traceId") or record["id"])


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a trace with its observations as a conversation. Raises BadRow."""
    left_out = LeftOutCounts()
    reader = MessageReader(left_out)
    trace: Record = {}
    trace_id = ""
    observations: dict[str, tuple[str, Record]] = {}
    for name, record in parts:
        file = f" in {name}" if name != parts[0][0] else ""
        given = [record]
        if isinstance(record.get("trace"), dict):
            trace, given = record["trace"], _check_list(record.get("observations"), record["trace"])
        elif "traceId" not in record:
            if "observations" not in record and record.get("type") in (MODEL_TYPE, TOOL_TYPE):
                raise BadRow(f"observation {record.get('id')}{file}: `traceId` is missing")
            trace, given = record, _check_list(record.get("observations", []), record)
        for observation in given:
            _add_observation(observation, file, observations)
    if trace:
        trace_id = _read_id(trace, "id", "the trace")
    for location, observation in observations.values():
        own_trace = observation.get("traceId", trace_id)
        trace_id = trace_id or own_trace
        if own_trace != trace_id:
            raise BadRow(f"{location}: it belongs to the trace {own_trace}, not to {trace_id}")
    spans = [_read_span(record, location, reader) for location, record in observations.values()]
    # Simple programs record only what went in and out.
    if not any(span.kind == "model" for span in spans) and trace:
        spans.append(_read_trace(trace, trace_id, reader))
    return build_trace_row(trace_id, spans, left_out, MISSING_ADVICE)


def build_record(item: Item) -> list[Record]:
    """Return the judgements of a trace as scores, each as `POST /api/public/scores` takes it."""
    if not item.spans:
        return []
    scores = []
    for number, judgement in enumerate(iter_judgements(item)):
        score = {
            "id": make_id(item, number, judgement),
            "traceId": item.uid,
            "name": judgement.name,
            "value": judgement.label,
            "dataType": "CATEGORICAL",
        }
        # The trace itself stands for a call that no observation tells of.
        if judgement.span and judgement.span != item.uid:
            score["observationId"] = judgement.span
        if judgement.judge:
            score["comment"] = f"judge {judgement.judge}"
        scores.append(score)
    return scores


def _add_observation(
    observation: Any, file: str, observations: dict[str, tuple[str, Record]]
) -> None:
    # As lists of traces have them.
    if isinstance(observation, str):
        raise BadRow(
            f"observation {observation}: only its id is there; export each trace with its "
            "observations (GET /api/public/traces/ID)"
        )
    if not isinstance(observation, dict):
        raise BadRow(f"an observation is {json.dumps(observation)[:40]}; {TITLE} has an object")
    own_id = _read_id(observation, "id", "an observation")
    location = f"observation {own_id}{file}"
    known = observations.get(own_id)
    if known and known[1] != observation:
        raise BadRow(f"{location}: two observations have this id")
    observations[own_id] = location, observation


def _read_span(observation: Record, location: str, reader: MessageReader) -> Span:
    kind = observation.get("type")
    if not isinstance(kind, str):
        raise BadRow(f"{location}: `type` is {json.dumps(kind)[:40]}; {TITLE} has a text there")
    parent = ""
    if observation.get("parentObservationId") is not None:
        parent = _read_id(observation, "parentObservationId", location)
    start = _read_time(observation, "startTime", location)
    end = start
    if observation.get("endTime") is not None:
        end = _read_time(observation, "endTime", location)
    model = observation.get("model")
    span = Span(
        id=_read_id(observation, "id", location),
        location=location,
        parent=parent,
        start=start,
        end=end,
        model=model if isinstance(model, str) else "",
        has_failed=observation.get("level") == "ERROR",
    )
    given, answer = observation.get("input"), observation.get("output")
    if kind == MODEL_TYPE:
        span.kind = "model"
        span.inputs = reader.read_list(given, "user", location)
        span.outputs = reader.read_list(answer, "assistant", location)
    elif kind == TOOL_TYPE:
        span.kind = "tool"
        span.tool = str(observation.get("name") or "tool")[:200]
        span.arguments = given
        # A tool that failed has told the agent why.
        if answer is not None or span.has_failed:
            failure = observation.get("statusMessage") if answer is None else answer
            span.result = format_result(failure)
    return span


def _read_trace(trace: Record, trace_id: str, reader: MessageReader) -> Span:
    """Return a trace without calls of models as one: its input and its output."""
    location = f"trace {trace_id}"
    return Span(
        id=trace_id,
        location=location,
        kind="model",
        inputs=reader.read_list(trace.get("input"), "user", location),
        outputs=reader.read_list(trace.get("output"), "assistant", location),
    )


def _check_list(value: Any, trace: Record) -> list[Any]:
    if not isinstance(value, list):
        raise BadRow(
            f"trace {trace.get('id')}: `observations` is {json.dumps(value)[:40]}; {TITLE} has a "
            "list there"
        )
    return value


def _read_id(record: Record, name: str, location: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= 200:
        raise BadRow(f"{location}: `{name}` is {json.dumps(value)[:40]}; {TITLE} has a text there")
    return value


def _read_time(record: Record, name: str, location: str) -> float:
    value = record.get(name)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        raise BadRow(
            f"{location}: `{name}` is {json.dumps(value)[:40]}; {TITLE} has a time such as "
            "2026-01-31T12:00:00Z there"
        ) from None


FORMAT = Format(
    TITLE,
    parse_row,
    read_records,
    file_pattern=r"\.jsonl?(\.gz)?$",
    export_advice=EXPORT_ADVICE,
    find_item_id=find_trace_id,
    build_record=build_record,
    hidden_parts=("author", "corrections", "models", "metadata", "fields"),
    required_fields=(FIELD,),
)
