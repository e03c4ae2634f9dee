"""The types of the tools' arguments: what becomes part of a URL or of a file's name is checked."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

MAX_TEXT_CHARS = 3_000_000
"""The longest text that a tool takes. Streamable HTTP refuses requests of more than 4 MiB."""
SLUG = r"^[-a-zA-Z0-9_]+$"
"""Letters, digits, `-` and `_`, so that a value is always one part of a URL's path."""

TaskCode = Annotated[
    str, Field(pattern=SLUG, max_length=100, description="The task's code, such as nli.")
]
SetName = Annotated[
    str, Field(pattern=SLUG, max_length=100, description="The evaluation set's name.")
]
RoundNumber = Annotated[int, Field(ge=1, le=100_000, description="The round's number.")]
ModelId = Annotated[UUID, Field(description="The model's ID. `list_models` returns yours.")]
RunId = Annotated[UUID, Field(description="The evaluation's ID. `list_runs` returns them.")]
ConfigText = Annotated[
    str, Field(min_length=1, max_length=262_144, description="The whole configuration, as YAML.")
]
ModelName = Annotated[
    str, Field(min_length=1, max_length=100, description="The model's name, unique in its task.")
]
Description = Annotated[
    str, Field(max_length=10_000, description="For the model's card, in Markdown.")
]
ContextFormat = Annotated[
    Literal["jsonl", "csv", "tsv", "txt"], Field(description="The format of `text`.")
]
Contexts = Annotated[
    str,
    Field(
        max_length=MAX_TEXT_CHARS,
        description=(
            "The file's text, with the context fields of the task in each line. "
            "txt: one context per line, if the task asks for a single text."
        ),
    ),
]
SkipBad = Annotated[
    bool,
    Field(description="Store the good lines. Otherwise one wrong line refuses all of them."),
]
