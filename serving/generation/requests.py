"""Requests in OpenAI's protocol, checked. What is not served is refused, never ignored."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from serving.errors import BadRequestError, wrong_field
from serving.generation.calls import Call, forced_call
from serving.generation.parameters import without_unused
from serving.generation.sampling import Sampling
from serving.generation.schemas import choices_of

DEFAULT_TOKENS = 512  # of an answer whose request names no limit
MAX_TURNS = 256
MAX_PROMPTS = 64

Count = Annotated[int, Field(ge=1)]
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Item = TypeVar("Item")
Several = Annotated[list[Item], Field(min_length=1, max_length=MAX_PROMPTS)]
Usage = Literal["never", "last", "always"]
PLAIN, PARTS = "<text>", "<parts>"  # forms of a content, which errors do not mention
MESSAGES: Mapping[str, str] = {
    "extra_forbidden": "is not served here",
    "missing": "is missing",
    "model_type": "must be an object",
}
"""Our own words for some errors of pydantic."""


class _Part(BaseModel):
    """A part of a message's content: a text, or a refusal."""

    type: Literal["text", "refusal"]
    text: Annotated[str, Field(validation_alias=AliasChoices("text", "refusal"))]


def _form(content: Any) -> str:
    return PARTS if isinstance(content, list) else PLAIN


class _Message(BaseModel):
    """One turn. Other fields that clients send (`name`, `annotations`) do not change the prompt."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[
        Annotated[str, Tag(PLAIN)] | Annotated[list[_Part], Tag(PARTS)], Discriminator(_form)
    ]
    tool_calls: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: None = None
    audio: None = None

    @model_validator(mode="before")
    @classmethod
    def _with_refusal(cls, value: Any) -> Any:
        """Accept a turn of the model without content, as after a refusal or an empty answer."""
        is_without = isinstance(value, Mapping) and value.get("content", "") is None
        if is_without and value.get("role") == "assistant" and not value.get("tool_calls"):
            return {**value, "content": value.get("refusal") or ""}
        return value

    @property
    def plain(self) -> dict[str, str]:
        """Return role and text. OpenAI's newer role `developer` becomes `system`."""
        content = self.content
        if not isinstance(content, str):
            content = "".join(each.text for each in content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class _StreamOptions(BaseModel):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None  # dummy letters against listeners: none are sent


class _Schema(BaseModel):
    """The object around a JSON schema. Answers follow the schema, `strict` or not."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str | None = None
    strict: bool | None = None
    value: Annotated[dict[str, Any], Field(alias="schema")]


class _Format(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_schema"]
    json_schema: _Schema | None = None

    def choices(self) -> tuple[str, ...]:
        """Return each answer that the schema allows, as JSON; empty if the answer is free."""
        if self.type == "text":
            return ()
        if self.json_schema is None:
            raise wrong_field("response_format.json_schema", "is missing.")
        return choices_of(self.json_schema.value, "response_format.json_schema.schema")


class _Body(BaseModel):
    """The parameters of both kinds of requests, without ineffective ones (see `without_unused`)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    max_tokens: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    ignore_eos: bool | None = None

    @property
    def usage(self) -> Usage:
        """Return when a stream reports the token counts."""
        stream_options = self.stream_options
        if stream_options is None or not stream_options.include_usage:
            return "never"
        return "always" if stream_options.continuous_usage_stats else "last"

    def sampling(self) -> Sampling:
        """Return the sampling parameters."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limit = self.limit()
        return Sampling(
            max_tokens=DEFAULT_TOKENS if limit is None else limit,
            temperature=self.temperature or 0.0,
            top_p=1.0 if self.top_p is None else self.top_p,
            seed=None if self.seed is None else self.seed % 2**64,  # those below 0 are seeds, too
            stop=tuple(stop),
            logprobs=self.logprob_count(),
            choices=self.choices(),
            ignores_end=bool(self.ignore_eos),
        )

    def choices(self) -> tuple[str, ...]:
        """Return the texts that the answer may be; empty if the answer is free."""
        return ()

    def limit(self) -> int | None:
        """Return the maximum number of tokens of the answer, or None."""
        return self.max_tokens

    def logprob_count(self) -> int | None:
        """Return how many likeliest tokens to report for each token; None for no report."""
        return None

    def check(self) -> None:
        """Raise BadRequestError for parameters that exclude each other."""


class ChatRequest(_Body):
    """A request body for /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1, max_length=MAX_TURNS)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: _Format | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None

    @cached_property
    def call(self) -> Call | None:
        """Return the call that the answer must be; None if the answer is a text."""
        return forced_call(self.tools or (), self.tool_choice)

    def choices(self) -> tuple[str, ...]:
        if self.call:
            return self.call.choices
        return self.response_format.choices() if self.response_format else ()

    def check(self) -> None:
        if self.call and self.response_format and self.response_format.choices():
            raise wrong_field("tool_choice", "is not served beside a schema.")
        if self.choices() and self.stop:
            raise wrong_field("stop", "is not served beside a schema.")

    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def logprob_count(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None


class CompletionRequest(_Body):
    """A request body for /v1/completions: one prompt or several, as texts or as tokens."""

    prompt: str | Ids | Several[str] | Several[Ids]
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None

    def check(self) -> None:
        if self.stream and (len(self.prompts) > 1 or self.echo):
            raise wrong_field("stream", "answers one prompt, without echo.")

    @property
    def prompts(self) -> Sequence[str | list[int]]:
        """Return the prompts as a list."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [self.prompt]  # type: ignore[list-item]
        return self.prompt  # type: ignore[return-value]

    def logprob_count(self) -> int | None:
        return self.logprobs


Body = TypeVar("Body", bound=_Body)


def read_request(kind: type[Body], value: Any) -> Body:
    """Return the validated body. Raises BadRequestError, which names the parameter."""
    if not isinstance(value, Mapping):
        raise wrong_field("body", "must be a JSON object.")
    try:
        body = kind.model_validate(without_unused(value, kind.model_fields))
    except ValidationError as error:
        raise _named(error.errors(include_url=False)[0]) from None
    # Only now: it compares parameters that are valid by themselves.
    body.check()
    return body


def _named(error: ErrorDetails) -> BadRequestError:
    """Convert one of pydantic's errors to an error that names the parameter."""
    steps = [step for step in error["loc"] if step not in (PLAIN, PARTS)]
    # Where a value may be of several kinds, each of them says what it lacks.
    path = list(takewhile(lambda step: not _is_kind(step), steps))
    message = (error["msg"][0].lower() + error["msg"][1:]).removeprefix("input ")
    if error["type"] in MESSAGES:
        message = MESSAGES[error["type"]]
    elif len(path) < len(steps):
        message = "is of the wrong kind, empty or too long"
    return wrong_field(".".join(map(str, path)), f"{message}.")


def _is_kind(step: int | str) -> bool:
    """Return whether a step of pydantic's path names a type rather than a parameter."""
    return isinstance(step, str) and (step == "str" or "[" in step)
