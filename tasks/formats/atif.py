"""ATIF, the trajectories of agents that Harbor writes (`trajectory.json`).

Format: docs/rfcs/0001-trajectory-format.md of laude-institute/harbor, version 1.
"""

import json
from collections.abc import Sequence
from typing import Any

from tasks.formats.base import Format, Item, Part, Record, check_record
from tasks.formats.json_values import make_object_reader
from tasks.formats.trace_judgements import describe_judgements
from tasks.formats.trace_messages import Message, MessageReader
from tasks.formats.traces import FIELD, MAX_SPANS, Conversation
from tasks.line_files import BadRow

TITLE = "ATIF"
VERSION = "ATIF-v1."
ROLES = {"system": "system", "user": "user", "agent": "assistant"}
SUBAGENTS = "trajectories of agents that the agent started"
SHAPE = {"schema_version": str, "steps": list}


def parse_row(parts: Sequence[Part]) -> Record:
    """Return a trajectory as a conversation. Raises BadRow, which names the step."""
    record = check_record(parts[0][1], SHAPE, TITLE)
    if not record["schema_version"].startswith(VERSION):
        raise BadRow(f"`schema_version` is {record['schema_version'][:40]!r}; write {VERSION}0 "
                     "or later")  # fmt: skip
    trace_id = record.get("trajectory_id") or record.get("session_id")
    if not isinstance(trace_id, str) or not 1 <= len(trace_id) <= 200:
        raise BadRow(f"`session_id` is {json.dumps(trace_id)[:40]}; {TITLE} has a text there")
    if len(record["steps"]) > MAX_SPANS:
        raise BadRow(
            f"step {MAX_SPANS + 1}: the trajectory {trace_id} has {len(record['steps']):,} steps; "
            f"the most is {MAX_SPANS:,}"
        )
    conversation = Conversation(trace_id)
    reader = MessageReader(conversation.left_out)
    agent = record.get("agent")
    model = agent.get("model_name") if isinstance(agent, dict) else None
    # They are judged as traces of their own.
    if record.get("subagent_trajectories"):
        conversation.left_out[SUBAGENTS] += 1
    known: set[int] = set()
    for number, step in enumerate(record["steps"], 1):
        _add_step(step, number, known, conversation, reader)
        own_model = step.get("model_name", model)
        if step["source"] == "agent" and isinstance(own_model, str):
            conversation.models[own_model] = None
    return conversation.build_row()


def build_record(item: Item) -> Record | None:
    """Return the judgements of a trajectory, by `session_id` and `step_id`."""
    return describe_judgements(item, "session_id", "step_id")


def _add_step(
    step: Any, number: int, known: set[int], conversation: Conversation, reader: MessageReader
) -> None:
    """Add a step's message, its calls and what the environment answered. Raises BadRow."""
    check_record(step, {"step_id": int, "source": str}, TITLE, f"step {number}")
    location = f"step {step['step_id']}"
    if step["step_id"] in known:
        raise BadRow(f"{location}: two steps have this id")
    known.add(step["step_id"])
    if step["source"] not in ROLES:
        raise BadRow(f"{location}: the source is {step['source']!r}; sources are "
                     f"{', '.join(ROLES)}")  # fmt: skip
    if "message" not in step:
        raise BadRow(f"{location}: `message` is missing; {TITLE} has a text there, which may be "
                     "empty")  # fmt: skip
    span_id = str(step["step_id"])
    # No model reads it again, so it is no part of the conversation.
    if step.get("reasoning_content"):
        conversation.left_out["thoughts of models"] += 1
    told = {
        "role": ROLES[step["source"]],
        "content": step["message"],
        "tool_calls": step.get("tool_calls"),
    }
    for message in reader.read_list(told, told["role"], location):
        conversation.add(message, span_id, location)
    observation = step.get("observation")
    if observation is None:
        return
    check_record(observation, {"results": list}, TITLE, f"{location}.observation")
    for result in observation["results"]:
        check_record(result, {}, TITLE, f"{location}.observation.results")
        # A file of its own has what that agent did.
        if result.get("content") is None and result.get("subagent_trajectory_ref"):
            conversation.left_out[SUBAGENTS] += 1
            continue
        call = result.get("source_call_id")
        # What happens around the agent is told to it as a message.
        role = "user" if call is None else "tool"
        told = {"role": role, "content": result.get("content"), "tool_call_id": call}
        for message in reader.read_list(told, role, location):
            conversation.add(message or Message(role), span_id, location)


FORMAT = Format(
    TITLE,
    parse_row,
    make_object_reader({"": "", "item": ""}),
    file_pattern=r"trajector[^/]*\.jsonl?(\.gz)?$",
    build_record=build_record,
    hidden_parts=("author", "corrections", "models", "metadata", "fields"),
    required_fields=(FIELD,),
)
