"""Requests in OpenAI's protocol, validated. Unsupported parameters are refused, never ignored."""

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

from serving.errors import BadRequestError, build_wrong_field_error
from serving.generation.calls import ForcedCall, find_forced_call
from serving.generation.parameters import select_served_parameters
from serving.generation.replies import UsageReporting
from serving.generation.sampling import Sampling
from serving.generation.schemas import find_choices
from serving.generation.tool_turns import fold_tool_turns, has_tool_turns

DEFAULT_TOKENS = 512  # of an answer whose request names no limit
MAX_TURNS = 256
MAX_PROMPTS = 64

Count = Annotated[int, Field(ge=1)]
TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Item = TypeVar("Item")
PromptList = Annotated[list[Item], Field(min_length=1, max_length=MAX_PROMPTS)]
PLAIN, PARTS = "<text>", "<parts>"  # forms of a content, which errors do not mention
TURN, CALL, RESULT = "<turn>", "<call>", "<result>"  # forms of an item of /v1/responses
MESSAGE_BY_ERROR_TYPE: Mapping[str, str] = {
    "extra_forbidden": "is not served here",
    "missing": "is missing",
    "model_type": "must be an object",
}
"""Our own messages for some of pydantic's errors, by error type."""


class _Part(BaseModel):
    """A part of a message's content: a text or a refusal."""

    type: Literal["text", "refusal"]
    text: Annotated[str, Field(validation_alias=AliasChoices("text", "refusal"))]


def get_content_form(content: Any) -> str:
    """Return the form of a message's content, by which pydantic chooses how to read it."""
    return PARTS if isinstance(content, list) else PLAIN


class _CalledFunction(BaseModel):
    """The function of a call. arguments: usually JSON, as the model wrote it."""

    name: str
    arguments: str


class _ToolCall(BaseModel):
    """A call in an earlier turn of the assistant."""

    id: str
    function: _CalledFunction


class _Message(BaseModel):
    """A turn. Further fields that clients send (`name`, `annotations`) do not change the prompt."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[
        Annotated[str, Tag(PLAIN)] | Annotated[list[_Part], Tag(PARTS)],
        Discriminator(get_content_form),
    ]
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None
    function_call: None = None
    audio: None = None

    @model_validator(mode="before")
    @classmethod
    def _add_refusal(cls, value: Any) -> Any:
        """Return the turn. For the model's turn, replace null content by the refusal or "".

        Clients send such turns after a refusal, an empty answer or a call of a tool. With a call,
        the content may also be missing.
        """
        if not isinstance(value, Mapping) or value.get("role") != "assistant":
            return value
        # Some clients leave the content of a call out, others send null.
        is_missing = "content" not in value and bool(value.get("tool_calls"))
        if is_missing or value.get("content", "") is None:
            return {**value, "content": value.get("refusal") or ""}
        return value

    @property
    def plain_message(self) -> dict[str, Any]:
        """Return the turn's role and text, with its calls of tools or the id of its call.

        OpenAI's newer role `developer` becomes `system`.
        """
        content = self.content
        if not isinstance(content, str):
            content = "".join(each.text for each in content)
        role = "system" if self.role == "developer" else self.role
        message: dict[str, Any] = {"role": role, "content": content}
        # Only what is there, so that other turns are a role and a text.
        if self.role == "tool":
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in self.tool_calls]
        return message


class _StreamOptions(BaseModel):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None  # dummy letters against listeners: none are sent


class _SchemaParameter(BaseModel):
    """The object around a JSON schema. Answers follow the schema even if `strict` is false."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str | None = None
    strict: bool | None = None
    value: Annotated[dict[str, Any], Field(alias="schema")]


class _ResponseFormat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_schema"]
    json_schema: _SchemaParameter | None = None

    def list_choices(self) -> tuple[str, ...]:
        """Return each answer that the schema allows, as JSON; empty if the answer is free.

        Raises BadRequestError.
        """
        if self.type == "text":
            return ()
        if self.json_schema is None:
            raise build_wrong_field_error("response_format.json_schema", "is missing.")
        return find_choices(self.json_schema.value, "response_format.json_schema.schema")


class SchemaFormat(BaseModel):
    """The format of an answer in /v1/responses, with the schema's fields at the top level."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_schema"]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    value: Annotated[dict[str, Any] | None, Field(alias="schema")] = None

    @property
    def chat_format(self) -> dict[str, Any]:
        """Return the same format in the form of /v1/chat/completions."""
        if self.type == "text":
            return {"type": "text"}
        schema = {"name": self.name or "answer", "schema": self.value or {}}
        return {"type": "json_schema", "json_schema": schema}


class RequestBody(BaseModel):
    """The body of a request with only the parameters that `select_served_parameters` returned."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def check_combinations(self) -> None:
        """Raise BadRequestError for parameters that cannot be combined."""


class _Body(RequestBody):
    """The parameters shared by chats and completions."""

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
    def usage_reports(self) -> UsageReporting:
        """Return when a stream reports the token counts: never, last or always."""
        stream_options = self.stream_options
        if stream_options is None or not stream_options.include_usage:
            return "never"
        return "always" if stream_options.continuous_usage_stats else "last"

    def build_sampling(self) -> Sampling:
        """Return the sampling parameters of the request."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        limit = self.get_token_limit()
        return Sampling(
            max_tokens=DEFAULT_TOKENS if limit is None else limit,
            temperature=self.temperature or 0.0,
            top_p=1.0 if self.top_p is None else self.top_p,
            seed=None if self.seed is None else self.seed % 2**64,  # those below 0 are seeds, too
            stop=tuple(stop),
            logprobs=self.get_logprob_count(),
            choices=self.list_choices(),
            is_end_ignored=bool(self.ignore_eos),
        )

    def list_choices(self) -> tuple[str, ...]:
        """Return the possible answers; empty if the answer is free."""
        return ()

    def get_token_limit(self) -> int | None:
        """Return the maximum number of tokens of the answer; None if the request does not say."""
        return self.max_tokens

    def get_logprob_count(self) -> int | None:
        """Return how many of the likeliest tokens to report per token; None for no report."""
        return None


class ChatRequest(_Body):
    """A request body for /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1, max_length=MAX_TURNS)]
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: _ResponseFormat | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None

    def list_messages(self) -> list[dict[str, Any]]:
        """Return the turns as roles and texts; calls of tools and their results become texts."""
        messages = [message.plain_message for message in self.messages]
        # Other conversations keep turns of the same role apart.
        return fold_tool_turns(messages) if has_tool_turns(messages) else messages

    @cached_property
    def call(self) -> ForcedCall | None:
        """Return the call of which the answer must consist; None if the answer is a text."""
        return find_forced_call(self.tools or (), self.tool_choice)

    def list_choices(self) -> tuple[str, ...]:
        if self.call:
            return self.call.choices
        return self.response_format.list_choices() if self.response_format else ()

    def check_combinations(self) -> None:
        for number, message in enumerate(self.messages):
            # Else the prompt could not say which tool the result is of.
            if message.role == "tool" and message.tool_call_id is None:
                raise build_wrong_field_error(f"messages.{number}.tool_call_id", "is missing.")
            if message.role != "assistant" and message.tool_calls:
                path = f"messages.{number}.tool_calls"
                raise build_wrong_field_error(path, "are served only in the assistant's turns.")
        if self.call and self.response_format and self.response_format.list_choices():
            raise build_wrong_field_error("tool_choice", "is not served beside a schema.")
        if self.list_choices() and self.stop:
            raise build_wrong_field_error("stop", "is not served beside a schema.")

    def get_token_limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def get_logprob_count(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None


class CompletionRequest(_Body):
    """A request body for /v1/completions, with one prompt or several, as texts or as tokens."""

    prompt: str | TokenIds | PromptList[str] | PromptList[TokenIds]
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None

    def check_combinations(self) -> None:
        if self.stream and (len(self.prompts) > 1 or self.echo):
            raise build_wrong_field_error("stream", "answers one prompt, without echo.")

    @property
    def prompts(self) -> Sequence[str | list[int]]:
        """Return the prompts as a list."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [self.prompt]  # type: ignore[list-item]
        return self.prompt  # type: ignore[return-value]

    def get_logprob_count(self) -> int | None:
        return self.logprobs


Body = TypeVar("Body", bound=RequestBody)


def read_request(kind: type[Body], value: Any) -> Body:
    """Return the validated body. Raises BadRequestError, which names the parameter."""
    if not isinstance(value, Mapping):
        raise build_wrong_field_error("body", "must be a JSON object.")
    try:
        body = kind.model_validate(select_served_parameters(value, kind.model_fields))
    except ValidationError as error:
        raise _convert_error(error.errors(include_url=False)[0]) from None
    # Only now: it compares parameters that are valid by themselves.
    body.check_combinations()
    return body


def _convert_error(error: ErrorDetails) -> BadRequestError:
    """Convert an error of pydantic's to an error that names the parameter."""
    steps = [step for step in error["loc"] if step not in (PLAIN, PARTS, TURN, CALL, RESULT)]
    # Where a value may be of several kinds, each of them says what it lacks.
    path = list(takewhile(lambda step: not _is_kind(step), steps))
    message = (error["msg"][0].lower() + error["msg"][1:]).removeprefix("input ")
    if error["type"] in MESSAGE_BY_ERROR_TYPE:
        message = MESSAGE_BY_ERROR_TYPE[error["type"]]
    elif len(path) < len(steps):
        message = "is of the wrong kind, empty or too long"
    return build_wrong_field_error(".".join(map(str, path)), f"{message}.")


def _is_kind(step: int | str) -> bool:
    """Return whether a step of a path in pydantic's error names a type, not a parameter."""
    return isinstance(step, str) and (step == "str" or "[" in step)
