"""OpenAI's newer protocol, /v1/responses: its requests as chats, and a chat's answer in its form.

Nothing is stored between requests, so a request contains the whole conversation. An error names
each parameter that this server does not support, as on the older routes.
"""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from serving.errors import ServingError, build_wrong_field_error
from serving.generation.conversation import Conversation, EndReason, Piece
from serving.generation.replies import UsageReporting
from serving.generation.requests import (
    CALL,
    MAX_TURNS,
    PARTS,
    PLAIN,
    RESULT,
    TURN,
    ChatRequest,
    Count,
    RequestBody,
    SchemaFormat,
    get_content_form,
    read_request,
)


class _InputPart(BaseModel):
    """A part of a turn's content. An earlier answer comes back as `output_text`."""

    type: Literal["input_text", "output_text", "text"]
    text: str


class _InputTurn(BaseModel):
    """A turn of the conversation. Clients send an answer's id and status back with it."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[
        Annotated[str, Tag(PLAIN)] | Annotated[list[_InputPart], Tag(PARTS)],
        Discriminator(get_content_form),
    ]

    @property
    def chat_message(self) -> dict[str, str]:
        """Return the turn as a message of a chat."""
        content = self.content
        if not isinstance(content, str):
            content = "".join(part.text for part in content)
        return {"role": self.role, "content": content}


class _InputCall(BaseModel):
    """An earlier call of a function. Clients send it back as it came."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str

    @property
    def chat_message(self) -> dict[str, Any]:
        """Return the call as a message of a chat."""
        # In chats a call belongs to a turn of the assistant, here it is an item of its own.
        function = {"name": self.name, "arguments": self.arguments}
        return {"role": "assistant", "tool_calls": [{"id": self.call_id, "function": function}]}


class _InputResult(BaseModel):
    """The result of an earlier call."""

    type: Literal["function_call_output"]
    call_id: str
    output: Annotated[
        Annotated[str, Tag(PLAIN)] | Annotated[list[_InputPart], Tag(PARTS)],
        Discriminator(get_content_form),
    ]

    @property
    def chat_message(self) -> dict[str, Any]:
        """Return the result as a message of a chat."""
        text = self.output
        if not isinstance(text, str):
            text = "".join(part.text for part in text)
        return {"role": "tool", "tool_call_id": self.call_id, "content": text}


def _get_item_form(item: Any) -> str:
    """Return the form of an item of the input, by which pydantic chooses how to read it."""
    # Most clients send turns without a type.
    forms = {"function_call": CALL, "function_call_output": RESULT}
    kind = item.get("type") if isinstance(item, Mapping) else None
    return forms.get(kind, TURN) if isinstance(kind, str) else TURN


_InputItem = Annotated[
    Annotated[_InputTurn, Tag(TURN)]
    | Annotated[_InputCall, Tag(CALL)]
    | Annotated[_InputResult, Tag(RESULT)],
    Discriminator(_get_item_form),
]


class _TextParameter(BaseModel):
    """The parameter `text`, whose format may be a schema."""

    model_config = ConfigDict(extra="forbid")

    format: SchemaFormat | None = None
    verbosity: Literal["medium"] | None = None


class ResponsesRequest(RequestBody):
    """A request body for /v1/responses. `to_chat` refuses parameters that cannot be combined."""

    model: str
    input: (
        Annotated[str, Tag(PLAIN)]
        | Annotated[
            Annotated[list[_InputItem], Field(min_length=1, max_length=MAX_TURNS)], Tag(PARTS)
        ]
    ) = Field(discriminator=Discriminator(get_content_form))
    instructions: str | None = None
    max_output_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    text: _TextParameter | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None

    def to_chat(self) -> ChatRequest:
        """Return the same request to /v1/chat/completions. Raises BadRequestError."""
        messages: list[dict[str, Any]] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            messages.append({"role": "user", "content": self.input})
        else:
            messages += [item.chat_message for item in self.input]
        chat: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "max_completion_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "stop": self.stop,
            "stream": self.stream,
        }
        if self.text and self.text.format:
            chat["response_format"] = self.text.format.chat_format
        if self.tools:
            chat["tools"] = [_convert_tool(tool, n) for n, tool in enumerate(self.tools)]
            chat["tool_choice"] = _convert_tool_choice(self.tool_choice)
        elif self.tool_choice is not None:
            chat["tool_choice"] = self.tool_choice
        return read_request(ChatRequest, chat)


def _convert_tool(tool: Any, number: int) -> dict[str, Any]:
    """Return a tool in the form of /v1/chat/completions, with its function one level deeper.

    Raises BadRequestError.
    """
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        raise build_wrong_field_error(f"tools.{number}.type", "must be function.")
    names = ("name", "description", "parameters", "strict")
    function = {name: tool[name] for name in names if name in tool}
    return {"type": "function", "function": function}


def _convert_tool_choice(choice: Any) -> Any:
    if isinstance(choice, Mapping) and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


class ResponsesReply:
    """A builder of the response to one request, whole or as events.

    call: the name of the function whose arguments are the answer; "" if the answer is a text.
    """

    def __init__(self, model: str, request: ResponsesRequest, call: str = "") -> None:
        """Prepare the id, the time and the other values that all parts of the response share."""
        self._model, self._call = model, call
        self._request = request
        self._id = f"resp_{secrets.token_hex(12)}"
        self._item_id = f"{'fc' if call else 'msg'}_{secrets.token_hex(12)}"
        self._call_id = f"call_{secrets.token_hex(12)}"
        self._created_at = int(time.time())
        self._text, self._event_count = "", 0
        self._reason: EndReason | None = None

    def build_body(
        self,
        answers: Sequence[tuple[Conversation, str, EndReason]],
        is_prompt_reported: bool = False,
    ) -> dict[str, Any]:
        """Return the body of a response that is not streamed."""
        ((conversation, self._text, self._reason),) = answers
        return self._build_response(_count_usage(conversation))

    def build_first_events(self) -> Iterator[bytes]:
        """Yield the events that begin a stream."""
        response = self._build_response(None)
        yield self._build_event("response.created", response=response)
        yield self._build_event("response.in_progress", response=response)
        item = self._build_item("in_progress")
        yield self._build_event("response.output_item.added", output_index=0, item=item)
        if not self._call:
            yield self._build_content_event("response.content_part.added", part=_build_part(""))

    def build_piece_events(
        self, piece: Piece, usage: dict[str, Any] | None = None
    ) -> Iterator[bytes]:
        """Yield the events for a piece of the answer."""
        self._text += piece.text
        self._reason = piece.reason
        if piece.text and self._call:
            yield self._build_item_event("response.function_call_arguments.delta", delta=piece.text)
        elif piece.text:
            yield self._build_content_event(
                "response.output_text.delta", delta=piece.text, logprobs=[]
            )

    def build_last_events(
        self, conversation: Conversation, usage_reports: UsageReporting
    ) -> Iterator[bytes]:
        """Yield the events that end a stream; the last has the whole response."""
        # Each part that was opened is closed in turn, as clients wait for it.
        if self._call:
            yield self._build_item_event(
                "response.function_call_arguments.done", arguments=self._text, name=self._call
            )
        else:
            yield self._build_content_event(
                "response.output_text.done", text=self._text, logprobs=[]
            )
            yield self._build_content_event(
                "response.content_part.done", part=_build_part(self._text)
            )
        item = self._build_item(self._status)
        yield self._build_event("response.output_item.done", output_index=0, item=item)
        response = self._build_response(_count_usage(conversation))
        yield self._build_event(f"response.{self._status}", response=response)

    def build_error_event(self, error: ServingError) -> bytes:
        """Return the event for an error after the stream has begun."""
        return self._build_event(
            "error", code=error.code, message=str(error), param=next(iter(error.fields), None)
        )

    # A stream's first events are built before any text, so each part asks for the state anew.
    @property
    def _status(self) -> str:
        if self._reason is None:
            return "in_progress"
        return "incomplete" if self._reason == "length" else "completed"

    def _build_response(self, usage: dict[str, Any] | None) -> dict[str, Any]:
        # Clients compare these fields with their request, so all of them are repeated.
        request, status = self._request, self._status
        output = [self._build_item(status)] if self._reason else []
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created_at,
            "status": status,
            "error": None,
            "incomplete_details": (
                {"reason": "max_output_tokens"} if status == "incomplete" else None
            ),
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": {},
            "model": self._model,
            "output": output,
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": request.temperature or 0.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": request.tool_choice or "auto",
            "tools": request.tools or [],
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "truncation": "disabled",
            "usage": usage,
        }

    def _build_item(self, status: str) -> dict[str, Any]:
        """Return the answer so far as an item of the output."""
        if self._call:
            return {
                "type": "function_call",
                "id": self._item_id,
                "call_id": self._call_id,
                "name": self._call,
                "arguments": self._text,
                "status": status,
            }
        return {
            "type": "message",
            "id": self._item_id,
            "role": "assistant",
            "status": status,
            "content": [_build_part(self._text)] if self._reason else [],
        }

    def _build_content_event(self, kind: str, **fields: Any) -> bytes:
        return self._build_item_event(kind, content_index=0, **fields)

    def _build_item_event(self, kind: str, **fields: Any) -> bytes:
        return self._build_event(kind, item_id=self._item_id, output_index=0, **fields)

    def _build_event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._event_count, **fields}
        self._event_count += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(event))


def _build_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _count_usage(conversation: Conversation) -> dict[str, Any]:
    """Return the token counts of a finished conversation."""
    read, written = conversation.prompt_token_count, conversation.answer_token_count
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": conversation.cached_token_count},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
