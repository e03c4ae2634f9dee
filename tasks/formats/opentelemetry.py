"""OpenTelemetry's spans of generative models, as a collector's file exporter writes them (OTLP).

Format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding with the attributes of
https://opentelemetry.io/docs/specs/semconv/gen-ai/, in the present form (`gen_ai.input.messages`),
in the events before it (`gen_ai.user.message`, `gen_ai.content.prompt`), and in the numbered
attributes of OpenLLMetry (`gen_ai.prompt.0.content`).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.formats.base import Format, Item, LeftOutCounts, Part, Record
from tasks.formats.json_values import make_object_reader
from tasks.formats.trace_judgements import iter_judgements
from tasks.formats.trace_messages import Message, MessageReader, format_result
from tasks.formats.traces import FIELD, Span, build_trace_row
from tasks.line_files import BadRow

TITLE = "OpenTelemetry"
SPAN_KEY, LOG_KEY = "span", "log"
_BATCH_PATHS = {
    "resourceSpans.item.scopeSpans.item.spans.item": SPAN_KEY,
    # Before version 0.19 of the protocol.
    "resourceSpans.item.instrumentationLibrarySpans.item.spans.item": SPAN_KEY,
    "resourceLogs.item.scopeLogs.item.logRecords.item": LOG_KEY,
}
# Also of a list of batches, as scripts that collect them write.
PATHS = _BATCH_PATHS | {f"item.{path}": key for path, key in _BATCH_PATHS.items()}
MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")
TOOL_OPERATION = "execute_tool"
INPUT_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE_EVENT = "gen_ai.choice"
PROMPT_EVENT, COMPLETION_EVENT = "gen_ai.content.prompt", "gen_ai.content.completion"
EVALUATION_EVENT = "gen_ai.evaluation.result"
DETAILS_EVENT = "gen_ai.client.inference.operation.details"
EVENTS = (*INPUT_EVENTS, CHOICE_EVENT, PROMPT_EVENT, COMPLETION_EVENT, DETAILS_EVENT)
ERROR_STATUS = (2, "STATUS_CODE_ERROR")
REMOTE_PARENT_FLAGS = 0x300
"""The flags of a span whose parent belongs to another process (`SpanFlags`)."""
MISSING_ADVICE = (
    "Record what models read and write, as with "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
)
_HEX_PATTERN = re.compile("[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
_NUMBERED_PATTERN = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,5})\.(.+)")
_NUMBERED_CALL_PATTERN = re.compile(r"tool_calls\.(\d{1,4})\.(id|name|arguments)")


def find_trace_id(record: Record) -> str:
    """Return the id of the trace to which a span or a log record belongs."""
    inner = record.get(SPAN_KEY, record.get(LOG_KEY))
    return _normalise_id(str(inner.get("traceId") or "")) if isinstance(inner, dict) else ""


def parse_row(parts: Sequence[Part]) -> Record | None:
    """Return a trace's spans as a conversation; None if no model has a part in it.

    Raises BadRow, which names the span.
    """
    left_out = LeftOutCounts()
    records: dict[str, tuple[str, Record]] = {}
    logs: dict[str, list[Record]] = {}
    trace_id = ""
    for name, record in parts:
        file = f" in {name}" if name != parts[0][0] else ""
        # Log records count only where they tell what a model read or wrote.
        if LOG_KEY in record:
            log = _check_object(record[LOG_KEY], f"a log record{file}")
            if _get_event_name(log) in EVENTS and log.get("spanId"):
                logs.setdefault(_normalise_id(str(log["spanId"])), []).append(log)
            continue
        span_record = _check_object(record[SPAN_KEY], f"a span{file}")
        span_id = _read_id(span_record, "spanId", f"a span{file}")
        location = f"span {span_id}{file}"
        trace_id = _read_id(span_record, "traceId", location)
        known = records.get(span_id)
        # A batch that was sent again has equal spans.
        if known and known[1] != span_record:
            raise BadRow(f"{location}: two spans of the trace {trace_id} have this id")
        records[span_id] = location, span_record
    for span_id in logs.keys() - records.keys():
        raise BadRow(
            f"span {span_id}: its messages are here, but the span isn't; import the files of spans "
            "and of logs together, as a folder or a .zip archive"
        )
    reader = MessageReader(left_out)
    spans = [
        _read_span(record, location, logs.get(span_id, []), reader)
        for span_id, (location, record) in records.items()
    ]
    # Traces of other parts of the program.
    if not any(span.kind == "model" or span.inputs or span.outputs for span in spans):
        return None
    return build_trace_row(trace_id, spans, left_out, MISSING_ADVICE)


def build_record(item: Item) -> Record | None:
    """Return the judgements of a trace as log records, `gen_ai.evaluation.result`."""
    if not item.spans:
        return None
    logs = []
    for judgement in iter_judgements(item):
        attributes = {
            "gen_ai.evaluation.name": judgement.name,
            "gen_ai.evaluation.score.label": judgement.label,
        }
        if judgement.judge:
            attributes["dynabench.judge"] = judgement.judge
        if judgement.turn:
            attributes["dynabench.turn"] = str(judgement.turn)
        log = {
            "eventName": EVALUATION_EVENT,
            "traceId": item.uid,
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
            ],
        }
        if judgement.span:
            log["spanId"] = judgement.span
        logs.append(log)
    scope_logs = [{"scope": {"name": "dynabench"}, "logRecords": logs}]
    return {"resourceLogs": [{"resource": {}, "scopeLogs": scope_logs}]}


def _read_span(
    record: Record, location: str, logs: Sequence[Record], reader: MessageReader
) -> Span:
    attributes = _read_attributes(record.get("attributes"), location)
    operation = attributes.get("gen_ai.operation.name")
    # Some tracers name the tool and no operation.
    is_tool = operation == TOOL_OPERATION or (
        operation is None and "gen_ai.tool.name" in attributes
    )
    parent = ""
    if record.get("parentSpanId"):
        parent = _read_id(record, "parentSpanId", location)
    status = record.get("status")
    flags = record.get("flags")
    span = Span(
        id=_read_id(record, "spanId", location),
        location=location,
        parent=parent,
        start=_read_time(record, "startTimeUnixNano", location),
        end=_read_time(record, "endTimeUnixNano", location),
        has_failed=isinstance(status, dict) and status.get("code") in ERROR_STATUS,
        has_outer_parent=isinstance(flags, int)
        and flags & REMOTE_PARENT_FLAGS == REMOTE_PARENT_FLAGS,
    )
    if is_tool:
        _fill_tool(span, attributes)
        return span
    model = attributes.get("gen_ai.response.model", attributes.get("gen_ai.request.model"))
    span.model = model if isinstance(model, str) else ""
    # Others, such as embeddings, have no messages.
    if operation in MODEL_OPERATIONS:
        span.kind = "model"
    _add_attributes(span, attributes, reader)
    events = record.get("events") or []
    if not isinstance(events, list):
        raise BadRow(f"{location}: `events` is no list")
    # In the order of time, as spans and log records have them in any.
    for event in sorted([*events, *logs], key=lambda event: _find_time(event)):
        _add_event(span, _check_object(event, f"{location}: an event"), reader)
    # Before the operation had a name.
    if operation is None and span.outputs:
        span.kind = "model"
    return span


def _fill_tool(span: Span, attributes: Mapping[str, Any]) -> None:
    span.kind = "tool"
    name, call = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.tool.call.id")
    span.tool = name if isinstance(name, str) else ""
    span.call = call if isinstance(call, str) else ""
    span.arguments = _parse_json(attributes.get("gen_ai.tool.call.arguments"))
    if "gen_ai.tool.call.result" in attributes:
        span.result = format_result(attributes["gen_ai.tool.call.result"])


def _add_attributes(span: Span, attributes: Mapping[str, Any], reader: MessageReader) -> None:
    """Add the messages in attributes of a span, or of the event that has the same ones."""
    instructions = attributes.get("gen_ai.system_instructions")
    span.inputs += reader.read_list(instructions, "system", span.location)
    for key, role, messages in (
        ("gen_ai.input.messages", "user", span.inputs),
        ("gen_ai.output.messages", "assistant", span.outputs),
        # As some wrote before there was a convention for events.
        ("gen_ai.prompt", "user", span.inputs),
        ("gen_ai.completion", "assistant", span.outputs),
    ):
        messages += reader.read_list(attributes.get(key), role, span.location)
    for kind, message in _read_numbered(attributes):
        messages = span.inputs if kind == "prompt" else span.outputs
        role = "user" if kind == "prompt" else "assistant"
        messages += reader.read_list({"role": role, **message}, role, span.location)


def _read_numbered(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Record]]:
    """Yield the messages in attributes such as `gen_ai.prompt.0.content`, in order."""
    messages: dict[tuple[str, int], Record] = {}
    calls: dict[tuple[str, int], dict[int, Record]] = {}
    for key, value in attributes.items():
        match = _NUMBERED_PATTERN.fullmatch(key)
        if not match:
            continue
        place = match[1], int(match[2])
        message = messages.setdefault(place, {})
        if call := _NUMBERED_CALL_PATTERN.fullmatch(match[3]):
            calls.setdefault(place, {}).setdefault(int(call[1]), {})[call[2]] = value
        elif match[3] in ("role", "content", "tool_call_id"):
            message[match[3]] = value
    for place, message in sorted(messages.items()):
        message["tool_calls"] = [call for _, call in sorted(calls.get(place, {}).items())]
        # A list of parts is written as its JSON.
        if isinstance(message.get("content"), str):
            parsed = _parse_json(message["content"])
            if isinstance(parsed, list) and parsed and all(isinstance(p, dict) for p in parsed):
                message["content"] = parsed
        yield place[0], message


def _add_event(span: Span, event: Record, reader: MessageReader) -> None:
    """Add the messages of an event of a span, or of a log record about it."""
    name = _get_event_name(event)
    if name not in EVENTS:
        return
    attributes = _read_attributes(event.get("attributes"), span.location, prefix="")
    # The present form, in an event.
    if name == DETAILS_EVENT:
        _add_attributes(span, attributes, reader)
        return
    body: Any = attributes.get("gen_ai.event.content")
    if event.get("body") is not None:
        body = _read_value(event["body"], span.location)
    body = _parse_json(body)
    if not isinstance(body, Mapping):
        body = {key: _parse_json(value) for key, value in attributes.items()}
    if name in (PROMPT_EVENT, COMPLETION_EVENT):
        key, role = "gen_ai.prompt", "user"
        messages = span.inputs
        if name == COMPLETION_EVENT:
            key, role, messages = "gen_ai.completion", "assistant", span.outputs
        messages += reader.read_list(attributes.get(key), role, span.location)
        return
    if name == CHOICE_EVENT:
        message = body.get("message", body)
        if isinstance(message, str):
            span.outputs.append(Message("assistant", message))
            return
        if not isinstance(message, Mapping):
            raise BadRow(f"{span.location}: the message of a choice is no object")
        span.outputs += reader.read_list(
            {**message, "role": message.get("role", "assistant")}, "assistant", span.location
        )
        return
    role = INPUT_EVENTS[name]
    message = {key: value for key, value in body.items() if key != "name"}
    span.inputs += reader.read_list({**message, "role": role}, role, span.location)


def _get_event_name(event: Record) -> str:
    """Return the name of an event or a log record; in older ones it is an attribute."""
    for name in (event.get("name"), event.get("eventName")):
        if isinstance(name, str) and name:
            return name
    for attribute in event.get("attributes") or ():
        if isinstance(attribute, dict) and attribute.get("key") == "event.name":
            value = attribute.get("value")
            return str(value.get("stringValue")) if isinstance(value, dict) else ""
    return ""


def _read_attributes(attributes: Any, location: str, prefix: str = "gen_ai.") -> dict[str, Any]:
    """Return the attributes whose names begin with `prefix`; others may be large. Raises BadRow."""
    if attributes is None:
        return {}
    if not isinstance(attributes, list):
        raise BadRow(f"{location}: `attributes` is no list")
    values = {}
    for attribute in attributes:
        if not isinstance(attribute, dict) or not isinstance(attribute.get("key"), str):
            raise BadRow(f"{location}: an attribute is no object with `key` and `value`")
        if attribute["key"].startswith(prefix):
            values[attribute["key"]] = _read_value(attribute.get("value"), location)
    return values


def _read_value(value: Any, location: str) -> Any:
    """Return an `AnyValue` of the protocol as a plain value. Raises BadRow."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise BadRow(f"{location}: the value {json.dumps(value)[:40]} is no object")
    if "arrayValue" in value:
        values = _check_object(value["arrayValue"], f"{location}: an arrayValue").get("values")
        return [_read_value(item, location) for item in _check_list(values, location)]
    if "kvlistValue" in value:
        values = _check_object(value["kvlistValue"], f"{location}: a kvlistValue").get("values")
        return {
            str(_check_object(item, f"{location}: an entry").get("key")): _read_value(
                item.get("value"), location
            )
            for item in _check_list(values, location)
        }
    kind, plain = next(iter(value.items()))
    if kind == "intValue" and isinstance(plain, str) and plain.lstrip("-").isdigit():
        return int(plain[:40])
    return plain


def _check_list(values: Any, location: str) -> list[Any]:
    if values is None:
        return []
    if not isinstance(values, list):
        raise BadRow(f"{location}: `values` is no list")
    return values


def _check_object(value: Any, location: str) -> Record:
    if not isinstance(value, dict):
        raise BadRow(f"{location} is {json.dumps(value)[:40]}; {TITLE} has an object there")
    return value


def _read_id(record: Record, name: str, location: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= 64:
        raise BadRow(f"{location}: `{name}` is {json.dumps(value)[:40]}; {TITLE} has a text there")
    return _normalise_id(value)


def _normalise_id(value: str) -> str:
    """Return an id in lower case, as the protocol reads hexadecimal ids in any."""
    return value.lower() if _HEX_PATTERN.fullmatch(value) else value


def _read_time(record: Record, name: str, location: str) -> float:
    value = record.get(name)
    # 64 bits are written as a text, because JSON's numbers have 53.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    # Some exporters write numbers.
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise BadRow(
        f"{location}: `{name}` is {json.dumps(value)[:40]}; {TITLE} has nanoseconds since 1970 "
        "there"
    )


def _find_time(event: Any) -> int:
    """Return the time of an event or a log record; 0 if it has none."""
    if isinstance(event, dict):
        for name in ("timeUnixNano", "observedTimeUnixNano"):
            value = str(event.get(name) or "")
            if value.isascii() and value.isdigit() and len(value) <= 20 and int(value):
                return int(value)
    return 0


def _parse_json(value: Any) -> Any:
    """Return what a JSON text says; other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


FORMAT = Format(
    TITLE,
    parse_row,
    make_object_reader(PATHS),
    file_pattern=r"\.jsonl?(\.gz)?$",
    find_item_id=find_trace_id,
    build_record=build_record,
    hidden_parts=("author", "corrections", "models", "metadata", "fields"),
    required_fields=(FIELD,),
)
