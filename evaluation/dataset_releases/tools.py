"""Export a round as the file of another annotation tool; `tasks.formats` has the layouts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.models import Example
from core.errors import Refused
from evaluation.dataset_releases.reading import export_rows
from evaluation.dataset_releases.rows import convert_to_json, convert_to_text
from tasks.config.components import FIELD_TYPES
from tasks.config.schema import TaskConfig
from tasks.formats import EXPORT_FORMATS, write_tool_file
from tasks.formats.base import VERDICTS, Format, Item, LeftOutCounts, Vote, pop_correction
from tasks.formats.traces import SPANS_KEY
from tasks.models import Round, Task
from validation.consensus.claims import find_label_field, is_about_model
from validation.consensus.consensus import Policy
from validation.consensus.steps import decide_steps
from validation.decisions.consensus_rows import get_policy

Row = Mapping[str, Any]
ANSWER_TYPES = ("multiclass", "text", "long_text", "span")
OWNER_MODE = "owner"
AUTHOR_VERDICT = {Example.Outcome.FOOLED: "incorrect", Example.Outcome.NOT_FOOLED: "correct"}


def select_tools(task: Task) -> dict[str, Format]:
    """Return the formats, by tool name, that support the task's fields."""
    fields: set[str] = set()
    if task.config.kind == "examples":
        fields = set(task.config.model_fields)
    return {
        name: tool_format
        for name, tool_format in EXPORT_FORMATS.items()
        if fields.issuperset(tool_format.required_fields)
    }


def export_for_tool(
    round: Round, tool: str, left_out: LeftOutCounts | None = None
) -> Iterator[str]:
    """Stream a file with all examples that were not withdrawn, for an annotation tool.

    tool: a key of `tasks.formats.EXPORT_FORMATS`. left_out: counts the rows that the format
    cannot hold. Raises Refused if the format does not support the task's answers or fields.
    """
    config = round.task.config
    answer_type = config.get_component(config.answer_field).type
    if answer_type not in ANSWER_TYPES:
        raise Refused(
            f"The answers of {round.task.code} are of the type {answer_type}; for other tools go "
            f"out {', '.join(ANSWER_TYPES)}. Take the JSON lines."
        )
    tool_format, policy = EXPORT_FORMATS[tool], get_policy(round)
    missing_fields = set(tool_format.required_fields) - set(config.model_fields)
    if missing_fields:
        raise Refused(
            f"{tool_format.title} has the fields {', '.join(tool_format.required_fields)}; "
            f"{round.task.code} lacks {', '.join(sorted(missing_fields))}."
        )
    items = (_make_item(row, config, policy) for row in export_rows(round))
    return write_tool_file(items, tool, left_out)


def _make_item(row: Row, config: TaskConfig, policy: Policy) -> Item:
    """Return a row as an item for tools: texts to judge, votes, and JSON for our import."""
    answer = config.answer_field
    context, inputs = json.loads(row["context"]["context_json"]), json.loads(row["input_json"])
    metadata = json.loads(row["metadata_json"])
    own_answer = inputs.pop(answer, None)
    label = own_answer
    # Our import reads the text as the label, and its position from the metadata.
    if isinstance(own_answer, dict):  # a marked span
        label = own_answer["text"]
        if own_answer["start"] is not None:
            metadata[f"{answer}_start"] = own_answer["start"]
    model_name, prediction = _read_prediction(row, answer)
    labels = [option.value for option in config.get_labels(answer)]
    votes = list(_read_votes(row, labels))
    # The row in the format of our own import. Tools pass it through unchanged.
    imported_row = {
        "uid": row["uid"],
        "round": row["round"],
        "context": context,
        "input": inputs,
        "author": row["anon_uid"],
        "author_label": label,
        "model_prediction": prediction,
        "validations": list(map(_describe_vote, votes)),
        "metadata": metadata,
    }
    # If authors give no answer, their outcome says whether the model's is right.
    if own_answer is None and prediction and row["outcome"] in AUTHOR_VERDICT:
        imported_row["author_verdict"] = AUTHOR_VERDICT[row["outcome"]]
    texts = _build_display_texts({**context, **inputs}, config)
    return Item(
        uid=row["uid"],
        texts=texts | _build_display_answer(row, config, label, prediction),
        answer_field=answer,
        label=row["label"] if row["validated"] else None,
        model=model_name,
        prediction=prediction["label"] if prediction else None,
        votes=votes,
        row_json=convert_to_json(imported_row),
        is_choice=bool(labels),
        spans=_read_spans(metadata),
        step_labels=_decide_steps(votes, policy),
    )


def _decide_steps(votes: Sequence[Vote], policy: Policy) -> dict[str, str]:
    """Return the label of each step of a conversation that the votes have decided."""
    decisions = decide_steps((vote.steps for vote in votes), policy)
    return {key: decision.label for key, decision in decisions.items() if decision.label}


def _read_spans(metadata: Row) -> Sequence[str]:
    """Return the span of each turn of an imported trace; empty for other rows."""
    spans = metadata.get(SPANS_KEY)
    if isinstance(spans, list) and all(isinstance(span, str) for span in spans):
        return spans
    return ()


def _build_display_texts(values: Row, config: TaskConfig) -> dict[str, str]:
    """Return the texts that judges read, by field; a conversation becomes one line per turn."""
    chat_components = {
        component.name: component
        for component in (*config.context, *config.input)
        if component.type == "chat"
    }
    texts = {}
    for name, value in values.items():
        if value is None:
            continue
        if name in chat_components:
            texts[name] = FIELD_TYPES["chat"].display(chat_components[name], value)
        else:
            texts[name] = convert_to_text(value)
    return texts


def _build_display_answer(
    row: Row, config: TaskConfig, label: str | None, prediction: Mapping[str, Any] | None
) -> dict[str, str]:
    """Return the answer to be judged and its question, by name; empty if judges choose labels."""
    if find_label_field(config):
        return {}
    if prediction and (label is None or is_about_model(config, row["outcome"])):
        label = prediction["label"]
    if label is None:
        return {}
    texts = {f"{config.answer_field}_given": label}
    if config.validation.question and config.validation.asks != "attempt":
        texts[f"{config.answer_field}_question"] = _build_question(config)
    return texts


def _build_question(config: TaskConfig) -> str:
    """Return the task's question to judges, with the meanings of `correct` and `incorrect`."""
    validation = config.validation
    if not validation.answers:
        return str(validation.question)
    answer_meanings = (
        f"correct: {validation.answers.correct}; incorrect: {validation.answers.incorrect}"
    )
    return f"{validation.question} ({answer_meanings})"


def _read_prediction(row: Row, answer: str) -> tuple[str | None, dict[str, Any] | None]:
    """Return the first target's name, as in imported data, and its answer.

    Both are None if no target answered.
    """
    if row["output_json"] is None:
        return None, None
    output = json.loads(row["output_json"])
    model = row["model_endpoint_name"].removeprefix(f"{row['task']}_")
    label, probs = convert_to_text(output.get(answer, "")), output.get("prob")
    # Imported outputs may use `prob` for something else. Only numbers by label are read back.
    if not isinstance(probs, dict) or not all(isinstance(p, int | float) for p in probs.values()):
        probs = None
    return model, {"model": model, "label": label, "probs": probs}


def _read_votes(row: Row, labels: Sequence[str]) -> Iterator[Vote]:
    """Yield the votes on a row with their corrections, without decisions of owners."""
    corrections = [
        (typed_correction["validator"], typed_correction["answer"])
        for typed_correction in row["corrections"]
    ]
    step_votes = row.get("step_votes") or ()
    for index, (label, mode, validator) in enumerate(row["validations"]):
        # Owners' decisions are not votes; an import would count them twice.
        if mode == OWNER_MODE:
            continue
        correction = ""
        if label == "incorrect":
            correction = pop_correction(corrections, validator)
        is_verdict = label in VERDICTS and label not in labels
        # Decisions of owners come last, so that the others are at the same place.
        steps = step_votes[index] if index < len(step_votes) else {}
        yield Vote(validator, label, is_verdict, correction, steps)


def _describe_vote(vote: Vote) -> dict[str, Any]:
    """Return a vote in the format of our import."""
    kind = "verdict" if vote.is_verdict else "label"
    row: dict[str, Any] = {"worker": vote.worker, kind: vote.label}
    if vote.correction:
        row["correction"] = vote.correction
    if vote.steps:
        row["steps"] = vote.steps
    return row
