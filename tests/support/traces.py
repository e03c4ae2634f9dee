"""Traces of agents, as their tools write them. All texts are made up."""

import json
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"
TRACE = "0af7651916cd43dd8448eb211c80319c"
QUESTION = [{"role": "user", "parts": [{"type": "text", "content": "How warm is it in Oslo?"}]}]
CALL = {"role": "assistant", "parts": [
    {"type": "reasoning", "content": "I need the tool."},
    {"type": "tool_call", "id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}},
]}  # fmt: skip
RESULT = {"role": "tool", "parts": [
    {"type": "tool_call_response", "id": "c1", "response": "17 °C"},
]}  # fmt: skip
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "17 degrees."}]}
TURNS = [
    {"role": "user", "text": "How warm is it in Oslo?"},
    {"role": "assistant", "text": "",
     "calls": [{"id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}}]},
    {"role": "tool", "text": "17 °C", "call": "c1"},
    {"role": "assistant", "text": "17 degrees."},
]  # fmt: skip


def any_value(value):
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(values):
    return [{"key": key, "value": any_value(value)} for key, value in values.items()]


def otel(number, start, values, **more):
    """A span of the protocol, in seconds."""
    return {
        "traceId": TRACE, "spanId": f"{number:016x}", "name": "span",
        "startTimeUnixNano": f"{start}000000000", "endTimeUnixNano": f"{start + 1}000000000",
        "attributes": attributes(values), **more,
    }  # fmt: skip


def chat(given, answer, operation="chat"):
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.response.model": "model-1",
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps(answer),
    }


def batch(*spans):
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}]}


TOOL = {
    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up",
    "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "17 °C",
}  # fmt: skip
SPANS = [
    otel(1, 10, chat(QUESTION, [ANSWER], "invoke_agent"), endTimeUnixNano="20000000000"),
    otel(2, 11, chat(QUESTION, [CALL]), parentSpanId=f"{1:016x}"),
    otel(3, 12, TOOL, parentSpanId=f"{1:016x}"),
    otel(4, 13, chat([*QUESTION, CALL, RESULT], [ANSWER]), parentSpanId=f"{1:016x}"),
]

TRAJECTORY = {
    "schema_version": "ATIF-v1.4", "session_id": "s1",
    "agent": {"name": "agent", "version": "1", "model_name": "model-1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "How warm is it in Oslo?"},
        {"step_id": 2, "source": "agent", "message": "", "reasoning_content": "Hm.",
         "tool_calls": [{"tool_call_id": "c1", "function_name": "look_up",
                         "arguments": {"city": "Oslo"}}],
         "observation": {"results": [{"source_call_id": "c1", "content": "17 °C"}]}},
        {"step_id": 3, "source": "agent", "message": "17 degrees."},
    ],
}  # fmt: skip
