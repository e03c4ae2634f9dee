"""Inspect's logs: `.eval` archives and `.json` files, each sample with the messages of its agent.

Format: `EvalSample` in `src/inspect_ai/log/_log.py` of UKGovernmentBEIS/inspect_ai.
"""

from collections.abc import Sequence
from typing import Any

from tasks.formats.base import Format, Item, Part, Record, Shape, check_record, hash_record
from tasks.formats.json_values import make_object_reader
from tasks.formats.trace_judgements import describe_judgements
from tasks.formats.trace_messages import MessageReader
from tasks.formats.traces import FIELD, MAX_SPANS, Conversation
from tasks.line_files import BadRow

TITLE = "Inspect"
SHAPE: Shape = {"id": (str, int), "epoch": int, "messages": list}
# What happened inside, which may be larger than everything else.
SKIPPED = ("events", "events_data", "attachments", "store", "error_retries", "timelines")
MODEL_SOURCE = "generate"


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a sample's messages as a conversation. Raises BadRow, which names the message."""
    sample = check_record(parts[0][1], SHAPE, TITLE)
    trace_id = sample.get("uuid")
    # Logs of before 2025 name no sample, but each message.
    if not isinstance(trace_id, str) or not trace_id or len(trace_id) > 200:
        trace_id = hash_record({name: sample[name] for name in SHAPE})
    messages = sample["messages"]
    if len(messages) > MAX_SPANS:
        raise BadRow(
            f"message {MAX_SPANS + 1}: the sample {sample['id']} has {len(messages):,} messages; "
            f"the most is {MAX_SPANS:,}"
        )
    conversation = Conversation(trace_id)
    reader = MessageReader(conversation.left_out)
    for number, message in enumerate(messages, 1):
        _add_message(message, number, conversation, reader)
    return conversation.build_row()


def build_record(item: Item) -> Record | None:
    """Return the judgements of a sample, by its `uuid` and the ids of messages."""
    return describe_judgements(item, "uuid", "id")


def _add_message(
    message: Any, number: int, conversation: Conversation, reader: MessageReader
) -> None:
    check_record(message, {"role": str}, TITLE, f"message {number}")
    span_id = message.get("id")
    if not isinstance(span_id, str) or not span_id or len(span_id) > 200:
        span_id = str(number)
    location = f"message {span_id}"
    if "content" not in message:
        raise BadRow(f"{location}: `content` is missing; {TITLE} has a text or a list there")
    told = {"role": message["role"], "content": message["content"]}
    if message["role"] == "tool":
        told["tool_call_id"] = message.get("tool_call_id")
        error = message.get("error")
        # What the agent read in place of a result.
        if isinstance(error, dict) and not message["content"]:
            told["content"] = str(error.get("message") or "")
    elif message.get("tool_calls"):
        told["tool_calls"] = message["tool_calls"]
    for own in reader.read_list(told, message["role"], location):
        conversation.add(own, span_id, location)
    if message["role"] == "assistant" and isinstance(message.get("model"), str):
        conversation.models[message["model"]] = None


_read_json = make_object_reader({"": "", "samples.item": ""}, SKIPPED)
FORMAT = Format(
    TITLE,
    parse_row,
    _read_json,
    # Not what an `.eval` archive has besides its samples.
    file_pattern=r"^(?!(.*/)?((header|summaries|reductions)\.json$|_journal/)).*\.json(\.gz)?$",
    build_record=build_record,
    hidden_parts=("author", "corrections", "models", "metadata", "fields"),
    required_fields=(FIELD,),
)
