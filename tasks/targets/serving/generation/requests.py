"""Requests in OpenAI's protocol, checked. What is not served is refused, never ignored."""

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.targets.serving.errors import wrong_field
from tasks.targets.serving.generation.sampling import Sampling

DEFAULT_TOKENS = 512  # of an answer whose request names no limit
MAX_TURNS = 256
MAX_PROMPTS = 64
MAX_CHOICES = 64

Count = Annotated[int, Field(ge=1)]
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Item = TypeVar("Item")
Several = Annotated[list[Item], Field(min_length=1, max_length=MAX_PROMPTS)]
Off = Literal[0, False] | None
"""A parameter that may be named, but only to say that it is not used."""


class _Part(BaseModel):
    type: Literal["text"]
    text: str


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    @property
    def plain(self) -> dict[str, str]:
        """Role and text; OpenAI's newer name of the system's role is the older one."""
        parts = self.content
        text = parts if isinstance(parts, str) else "".join(part.text for part in parts)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class _StreamOptions(BaseModel):
    include_usage: bool = False


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Plain(_Strict):
    type: Literal["text"]


class _Choice(_Strict):
    type: Literal["string"]
    enum: Annotated[list[str], Field(min_length=1, max_length=MAX_CHOICES)]


class _Chosen(_Strict):
    """A JSON object whose only member is one of some texts; other schemas are not served."""

    type: Literal["object"]
    properties: Annotated[dict[str, _Choice], Field(min_length=1, max_length=1)]
    required: list[str]
    additionalProperties: Literal[False]


class _Schema(_Strict):
    name: str
    strict: Literal[True]
    value: Annotated[_Chosen, Field(alias="schema")]


class _Structured(_Strict):
    type: Literal["json_schema"]
    json_schema: _Schema

    @property
    def texts(self) -> tuple[str, ...]:
        """Each answer that the schema allows, as JSON."""
        ((name, choice),) = self.json_schema.value.properties.items()
        return tuple(json.dumps({name: one}, ensure_ascii=False) for one in choice.enum)


class _Body(BaseModel):
    """What both kinds of requests may hold. `user` and the like change no answer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    max_tokens: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None
    presence_penalty: Off = None
    frequency_penalty: Off = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    user: str | None = None

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the number of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage

    def sampling(self) -> Sampling:
        """How to write."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limit = self.limit()
        return Sampling(
            max_tokens=DEFAULT_TOKENS if limit is None else limit,
            temperature=self.temperature or 0.0,
            top_p=1.0 if self.top_p is None else self.top_p,
            seed=self.seed,
            stop=tuple(stop),
            logprobs=self.told(),
            choices=self.choices(),
        )

    def choices(self) -> tuple[str, ...]:
        """The texts that the answer may be; none: it is free."""
        return ()

    def limit(self) -> int | None:
        """The most tokens of the answer, if the request says."""
        return self.max_tokens

    def told(self) -> int | None:
        """How many of the likeliest tokens are told for each token; None: none are."""
        return None

    def check(self) -> None:
        """Raises BadRequestError where parameters exclude each other."""


class ChatRequest(_Body):
    """A body of /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1, max_length=MAX_TURNS)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: Annotated[_Plain | _Structured, Field(discriminator="type")] | None = None
    store: Literal[False] | None = None

    def choices(self) -> tuple[str, ...]:
        how = self.response_format
        return how.texts if isinstance(how, _Structured) else ()

    def check(self) -> None:
        if self.choices() and self.stop:
            raise wrong_field("stop", "is not served beside a schema.")
        if isinstance(how := self.response_format, _Structured):
            schema = how.json_schema.value
            if schema.required != [*schema.properties]:
                raise wrong_field("response_format", "must require its only property.")
        if self.stream and self.logprobs:
            raise wrong_field("logprobs", "are not told in streams.")

    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def told(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None


class CompletionRequest(_Body):
    """A body of /v1/completions: one prompt or several, as texts or as tokens."""

    prompt: str | Ids | Several[str] | Several[Ids]
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    best_of: Literal[1] | None = None
    suffix: Literal[""] | None = None

    def check(self) -> None:
        if self.stream and (len(self.prompts) > 1 or self.logprobs is not None or self.echo):
            raise wrong_field("stream", "answers one prompt, without logprobs and echo.")

    @property
    def prompts(self) -> Sequence[str | list[int]]:
        """Each prompt by itself."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [self.prompt]  # type: ignore[list-item]
        return self.prompt  # type: ignore[return-value]

    def told(self) -> int | None:
        return self.logprobs


Body = TypeVar("Body", bound=_Body)


def read(kind: type[Body], value: Any) -> Body:
    """A checked body. Raises BadRequestError, which names the parameter."""
    if not isinstance(value, Mapping):
        raise wrong_field("body", "must be a JSON object.")
    try:
        body = kind.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # Where a value may be of several kinds, each of them says what it lacks.
        place = list(takewhile(lambda part: not _is_kind(part), found[0]["loc"]))
        said = found[0]["msg"][0].lower() + found[0]["msg"][1:]
        if found[0]["type"] == "extra_forbidden":
            said = "is not served here"
        elif len(place) < len(found[0]["loc"]):
            said = "is of the wrong kind, empty or too long"
        raise wrong_field(".".join(map(str, place)), f"{said}.") from None
    body.check()
    return body


def _is_kind(part: int | str) -> bool:
    return isinstance(part, str) and (part == "str" or "[" in part)
