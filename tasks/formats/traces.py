"""Traces of agents as conversations: spans in the order of time, messages, calls and results. Pure.

Each turn keeps the id of the span that it comes from, in the row's metadata (`spans`), so that
judgements can be given back under the same ids.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.config.field_types.chat import MAX_CONTEXT_TURNS
from tasks.config.field_types.tool_calls import MAX_CALLS, MAX_NAME_CHARS
from tasks.formats.base import LEFT_OUT_KEY, LeftOutCounts, Record
from tasks.formats.json_values import remove_control_characters
from tasks.formats.trace_messages import Message
from tasks.line_files import BadRow, find_unstorable_reason

FIELD = "trace"
"""The context field of an imported trace."""
SPANS_KEY, MODELS_KEY = "spans", "models"
"""The keys of a row's metadata: the span of each turn, and the models that answered."""
MAX_SPANS = 2000
"""The maximum number of spans of one trace."""
MAX_ID_CHARS = 200
LATER_SYSTEM = "system texts after the first turn"
EMPTY_MESSAGES = "messages without a text"


@dataclass
class Span:
    """A step of a trace: a call of a model or of a tool, or what encloses such calls.

    location: its name in messages. start, end: times that can be compared. kind: model, tool, or ""
    for a span that encloses others. call: the id of the tool's call, if known. result: what the
    tool returned; None if the trace does not say. has_outer_parent: its parent belongs to another
    service.
    """

    id: str
    location: str
    parent: str = ""
    start: float = 0
    end: float = 0
    kind: str = ""
    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)
    tool: str = ""
    call: str = ""
    arguments: Any = None
    result: str | None = None
    model: str = ""
    has_failed: bool = False
    has_outer_parent: bool = False


def check_spans(spans: Sequence[Span], trace_id: str) -> None:
    """Check that the spans form one tree or several. Raises BadRow, which names the span."""
    if len(spans) > MAX_SPANS:
        raise BadRow(
            f"{spans[MAX_SPANS].location}: the trace {trace_id} has {len(spans):,} spans; the most "
            f"is {MAX_SPANS:,}. Export fewer, such as those of the model and its tools"
        )
    # Before the parents, which name spans by these ids.
    spans_by_id: dict[str, Span] = {}
    for span in spans:
        if span.id in spans_by_id:
            raise BadRow(f"{span.location}: two spans of the trace {trace_id} have this id")
        spans_by_id[span.id] = span
    for span in spans:
        if span.parent and span.parent not in spans_by_id and not span.has_outer_parent:
            raise BadRow(
                f"{span.location}: its parent {span.parent} isn't in the file; import all spans of "
                "the trace together"
            )
    roots: set[str] = set()
    for span in spans:
        path: dict[str, None] = {}
        above: Span | None = span
        # Up to a span that was checked before, so that each is visited once.
        while above and above.id not in roots:
            if above.id in path:
                circle = " → ".join([*path, above.id][list(path).index(above.id) :][:6])
                raise BadRow(f"{above.location}: its parents form a circle ({circle})")
            path[above.id] = None
            above = spans_by_id.get(above.parent)
        roots |= path.keys()


def order_spans(spans: Sequence[Span]) -> list[tuple[Span, bool, bool]]:
    """Return each span with whether its inputs, and its outputs, come at this place.

    A span that encloses others comes twice: with its inputs when it starts, with its outputs when
    it ends. Any other comes when it starts. Of spans that start at once, the outer one is first.
    """
    parents = {span.id: span.parent for span in spans}
    speaking = [span for span in spans if span.kind or span.inputs or span.outputs]
    # All spans above one that speaks, up to those that are known to enclose.
    enclosing: set[str] = set()
    for span in speaking:
        above = span.parent
        while above and above not in enclosing:
            enclosing.add(above)
            above = parents.get(above, "")
    depths: dict[str, int] = {}
    for span in speaking:
        depth, above = 0, span.parent
        while above in parents:
            depth, above = depth + 1, parents[above]
        depths[span.id] = depth
    # By time, then ends before starts; a span ends after those inside it, and starts before them.
    events: list[tuple[tuple[float, int, int, int], Span, bool, bool]] = []
    for number, span in enumerate(speaking):
        if span.id in enclosing:
            end = max(span.start, span.end)
            is_instant = end == span.start
            start_key = (span.start, 1, depths[span.id], number)
            events.append((start_key, span, True, False))
            end_key = (end, 2 if is_instant else 0, -depths[span.id], number)
            events.append((end_key, span, False, True))
        else:
            events.append(((span.start, 1, depths[span.id], number), span, True, True))
    events.sort(key=lambda event: event[0])
    return [(span, has_inputs, has_outputs) for _, span, has_inputs, has_outputs in events]


class Conversation:
    """A conversation under construction. Errors name the span whose message is wrong."""

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.left_out = LeftOutCounts()
        self.models: dict[str, None] = {}
        self._turns: list[Record] = []
        self._spans: list[str] = []
        self._system_texts: set[str] = set()
        self._ids: dict[str, str] = {}
        """The id in the conversation of each call of the trace: a later call may repeat an id."""
        self._open_calls: dict[str, tuple[str, str]] = {}
        """The name and the arguments of each call without a result, by id in the conversation."""
        self._known_ids: set[str] = set()
        self._running_tools: dict[str, str] = {}

    def tell_history(self, messages: Iterable[Message], span_id: str, location: str) -> None:
        """Add the messages that a model reads, except those that the conversation has already."""
        place = 0
        for message in messages:
            found = self._find(message, place)
            if found is None:
                self.add(message, self._running_tools.get(message.call, span_id), location)
            else:
                # The history is in order, so the next message comes behind this one.
                place = found + 1

    def has_answer(self, message: Message) -> bool:
        """Return whether a turn of the assistant is this message."""
        return self._find(message, 0) is not None

    def add_tool(self, span: Span) -> None:
        """Add a tool's result, and its call unless a message of the model has made it."""
        call = span.call if span.call in self._ids else ""
        if span.call and not call and span.result is None:
            self._running_tools[span.call] = span.id
        # A message of a model has told the result before.
        if call and self._ids[call] not in self._open_calls:
            return
        if not span.call:
            call = self._find_open_call(span.tool, span.arguments)
        # The next call of a model may tell what the tool returned.
        if span.result is None:
            if call:
                self._running_tools[call] = span.id
            return
        if not call:
            call = span.call or span.id
            calls = ({"id": call, "name": span.tool, "arguments": span.arguments},)
            self.add(Message("assistant", calls=calls), span.id, span.location)
        self.add(Message("tool", span.result, call=call), span.id, span.location)

    def add(self, message: Message, span_id: str, location: str) -> None:
        """Add a message as a turn. Raises BadRow, which names the span."""
        text = remove_control_characters(message.text)
        if message.role == "system":
            self._add_system(text, span_id)
            return
        if message.role == "tool":
            self._add_result(message, text, span_id, location)
            return
        if not text.strip() and not message.calls:
            self.left_out[EMPTY_MESSAGES] += 1
            return
        turn: Record = {"role": message.role, "text": text}
        if message.calls:
            if message.role != "assistant":
                raise BadRow(f"{location}: a message of the {message.role} calls a tool; only the "
                             "assistant can")  # fmt: skip
            if len(message.calls) > MAX_CALLS:
                raise BadRow(f"{location}: a message has {len(message.calls)} calls; the most is "
                             f"{MAX_CALLS}")  # fmt: skip
            turn["calls"] = [self._open_call(call, location) for call in message.calls]
        self._append(turn, span_id, location)

    def build_row(self) -> Record:
        """Return the conversation as a row. Raises BadRow without an answer of a model."""
        if not any(turn["role"] == "assistant" for turn in self._turns):
            raise BadRow(
                f"the trace {self.trace_id} has no answer of a model; export it with its messages"
            )
        return {
            "uid": self.trace_id,
            "context": {FIELD: self._turns},
            "metadata": {SPANS_KEY: self._spans, MODELS_KEY: list(self.models)},
            LEFT_OUT_KEY: self.left_out,
        }

    def _add_system(self, text: str, span_id: str) -> None:
        if text in self._system_texts or not text.strip():
            return
        if not self._system_texts:
            # Also where the agent's span tells of the question before a model's of the system.
            self._turns.insert(0, {"role": "system", "text": text})
            self._spans.insert(0, span_id)
        elif len(self._turns) == 1:
            # Instructions and a message of the system, which are told one after the other.
            self._turns[0]["text"] += f"\n\n{text}"
        else:
            self.left_out[LATER_SYSTEM] += 1
        self._system_texts.add(text)

    def _add_result(self, message: Message, text: str, span_id: str, location: str) -> None:
        call = message.call or self._find_open_call(message.name, None)
        own_id = self._ids.get(call)
        if own_id is None:
            what = f"call {message.call}" if message.call else "call"
            raise BadRow(
                f"{location}: a tool's result belongs to a {what} that no message before it makes; "
                "export the trace from its beginning"
            )
        self._open_calls.pop(own_id, None)
        self._append({"role": "tool", "text": text, "call": own_id}, span_id, location)

    def _append(self, turn: Record, span_id: str, location: str) -> None:
        # The system's turn may still come.
        if len(self._turns) >= MAX_CONTEXT_TURNS - (not self._system_texts):
            raise BadRow(
                f"{location}: the trace {self.trace_id} has more than {MAX_CONTEXT_TURNS} turns, "
                "which is the most; leave it out, or export a part of it"
            )
        self._turns.append(turn)
        self._spans.append(span_id)

    def _open_call(self, call: Mapping[str, Any], location: str) -> Record:
        name = call["name"]
        if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARS:
            raise BadRow(
                f"{location}: the name of a called tool must be a text of 1 to {MAX_NAME_CHARS} "
                "characters"
            )
        call_id = call["id"]
        if call_id in (None, ""):
            call_id = f"call-{len(self._known_ids) + 1}"
        if (
            not isinstance(call_id, str)
            or len(call_id) > MAX_ID_CHARS
            or find_unstorable_reason(call_id)
        ):
            raise BadRow(
                f"{location}: the id of a call must be a text of at most {MAX_ID_CHARS} characters"
            )
        own_id, number = call_id, 1
        # Some models count their calls from 0 in each answer.
        while own_id in self._known_ids:
            number += 1
            own_id = f"{call_id[: MAX_ID_CHARS - 6]}-{number}"
        arguments = call["arguments"]
        if not isinstance(arguments, str | Mapping):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        # In a text that is the JSON of arguments.
        if find_unstorable_reason(arguments):
            arguments = remove_control_characters(_encode(arguments))
        name = remove_control_characters(name) or "tool"
        self._known_ids.add(own_id)
        self._ids[call_id] = own_id
        self._open_calls[own_id] = (name, _encode(arguments))
        return {"id": own_id, "name": name, "arguments": arguments}

    def _find_open_call(self, name: str, arguments: Any) -> str:
        """Return the trace's id of the earliest call without a result that fits; "" if none."""
        ids = {own_id: call_id for call_id, own_id in self._ids.items()}
        fitting = [
            own_id
            for own_id, (called, _) in self._open_calls.items()
            if own_id in ids and name in ("", called)
        ]
        equal = [
            own_id
            for own_id in fitting
            if arguments is not None and self._open_calls[own_id][1] == _encode(arguments)
        ]
        found = next(iter(equal or fitting), None)
        return ids[found] if found else ""

    def _find(self, message: Message, place: int) -> int | None:
        """Return the place of a turn, at or after `place`, that is this message; None if none."""
        if message.role == "system":
            text = remove_control_characters(message.text)
            return 0 if text in self._system_texts and place == 0 else None
        for index in range(place, len(self._turns)):
            if self._is_same(self._turns[index], message):
                return index
        return None

    def _is_same(self, turn: Record, message: Message) -> bool:
        if turn["role"] != message.role:
            return False
        # Tracers shorten results, so that the id of the call counts.
        if message.role == "tool" and message.call:
            return bool(turn["call"] == self._ids.get(message.call))
        if bool(turn.get("calls")) != bool(message.calls):
            return False
        if message.calls:
            own_calls = [(call["name"], _encode(call["arguments"])) for call in turn["calls"]]
            return own_calls == [
                (call["name"], _encode(_plain(call["arguments"]))) for call in message.calls
            ]
        return bool(turn["text"].strip() == remove_control_characters(message.text).strip())


def _plain(arguments: Any) -> Any:
    if isinstance(arguments, str | Mapping):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _encode(arguments: Any) -> str:
    """Return arguments as a text that is the same for equal ones."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True)


def build_trace_row(
    trace_id: str, spans: Sequence[Span], left_out: LeftOutCounts, missing_advice: str
) -> Record:
    """Return the row of a trace whose spans tell what models read and answered. Raises BadRow.

    missing_advice: how to record the messages of models.
    """
    check_spans(spans, trace_id)
    conversation = Conversation(trace_id)
    # What the reader of the spans has left out before.
    conversation.left_out += left_out
    for span, has_inputs, has_outputs in order_spans(spans):
        if span.kind == "tool":
            if has_outputs:
                conversation.add_tool(span)
            continue
        if span.kind == "model":
            _check_messages(span, missing_advice)
        if has_inputs:
            conversation.tell_history(span.inputs, span.id, span.location)
        # What an enclosing span wrote is known when it ends.
        if not has_outputs:
            continue
        if span.model and span.outputs:
            conversation.models[span.model] = None
        is_leaf = has_inputs and span.kind == "model"
        for message in span.outputs:
            # A span that encloses calls of models repeats the answer of the last one.
            if is_leaf or not conversation.has_answer(message):
                conversation.add(message, span.id, span.location)
    return conversation.build_row()


def _check_messages(span: Span, missing_advice: str) -> None:
    """Raise BadRow if a call of a model lacks its messages."""
    if not span.inputs and not span.outputs:
        raise BadRow(f"{span.location}: its messages are missing. {missing_advice}")
    if not span.outputs and not span.has_failed:
        raise BadRow(f"{span.location}: the model's answer is missing. {missing_advice}")
