"""The fields of a dataset's rows: one table for files, cards and checks.

Names that Dynabench's export has are Dynabench's; docs/datasets.md tells the differences.
"""

from typing import NamedTuple


class Field(NamedTuple):
    """A field. kind: text, whole, number or flag; `parts` where its value is an object."""

    name: str
    kind: str
    meaning: str
    parts: tuple["Field", ...] = ()
    depth: int = 0  # 1: a list of such values, 2: a list of lists


FIELDS = (
    Field("uid", "text", "Names the example, in all versions and for predictions."),
    Field("split", "text", "train, dev or test, and no author is in two of them; or program."),
    Field("task", "text", "The task's code."),
    Field("round", "whole", "The round's number."),
    Field("anon_uid", "text", "The author: a keyed hash, the same in all rounds of the task."),
    Field("by_program", "flag", "Whether a program wrote it; true in the split program alone."),
    Field("cid", "text", "A digest of the context; rows that share a context share it."),
    Field(
        "context",
        "object",
        "What the author wrote against.",
        (
            Field("context_json", "text", "Its fields, as JSON."),
            Field("tag", "text", "The owner's tag of the context."),
        ),
    ),
    Field("tag", "text", "The same tag, for slices."),
    Field("challenge", "text", "The owner's challenge that the author took up; null: none."),
    Field("support_json", "text", "The help that the author had with writing, as JSON; or null."),
    Field("input_json", "text", "What the author wrote, with the author's label, as JSON."),
    Field("label", "text", "What is right: the consensus; unjudged, the author's label."),
    Field("validated", "flag", "Whether others confirmed it. Always true in dev and test."),
    Field("decided_by", "text", "votes or owner; empty where nobody judged."),
    Field("total_verified", "whole", "How many people judged it."),
    Field(
        "votes",
        "object",
        "How often each label or verdict was given.",
        (Field("vote", "text", "The label or verdict."), Field("count", "whole", "How often.")),
        depth=1,
    ),
    Field(
        "validations",
        "text",
        "Each vote as [label or verdict; user, program or owner; keyed hash of the validator].",
        depth=2,
    ),
    Field("outcome", "text", "fooled, not_fooled, undecided, no_model or unknown."),
    Field("model_wrong", "flag", "Whether the model was fooled; null where nobody knows."),
    Field("model_endpoint_name", "text", "The first target of the round."),
    Field("output_json", "text", "What it answered, with its probabilities (prob), as JSON."),
    Field(
        "targets",
        "object",
        "Every target that was asked.",
        (
            Field("name", "text", "Its name."),
            Field("version", "text", "A digest of exactly what answered."),
            Field("output_json", "text", "What it answered, as JSON."),
            Field("fooled", "flag", "Whether it was fooled."),
        ),
        depth=1,
    ),
    Field("metadata_json", "text", "The author's answers to the task's questions, as JSON."),
    Field("generated_datetime", "text", "The day on which it was written (UTC)."),
    Field("time_elapsed", "number", "Seconds from showing the context to storing."),
    Field("parent_uid", "text", "The example that this one edits."),
    Field("withdrawn", "flag", "true: a tombstone; every field but the first four is missing."),
)
FEATURES = ("uid", "split", "task", "round", "cid", "context", "tag", "input_json", "withdrawn")
"""What a row without its label has."""
