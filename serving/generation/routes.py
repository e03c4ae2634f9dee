"""OpenAI's routes: /v1/models, /v1/responses, /v1/chat/completions, /v1/completions."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from serving.bodies import (
    MAX_BODY_BYTES,
    Message,
    Receive,
    check_method,
    check_size,
    parse_json,
    read_deadline_seconds,
)
from serving.errors import (
    BadRequestError,
    NotFoundError,
    ServingError,
    UnknownModelError,
)
from serving.generation.conversation import Conversation, EndReason, Piece, PieceCallback
from serving.generation.model import LanguageModel
from serving.generation.replies import Reply, UsageReporting, count_usage
from serving.generation.requests import ChatRequest, CompletionRequest, read_request
from serving.generation.responses import ResponsesReply, ResponsesRequest

FAILED_MESSAGE = "The model failed on this input. The server's log says why."
NO_ROUTE_MESSAGE = (
    "This route doesn't exist. Language models answer at /v1/responses, "
    "/v1/chat/completions or /v1/completions, and /v1/models lists them."
)
WAIT_SECONDS = 300.0  # of callers that name no deadline
Answer = dict[str, Any] | AsyncIterator[bytes]


class Registry(Protocol):
    """The methods of the registry that the routes need."""

    def find_recent(self, name: str, task: int | None = None) -> Any: ...
    def get(self, name: str, task: int | None = None) -> Any: ...
    def list_language_models(self, task: int | None = None) -> list[str]: ...


class OpenAIRoutes:
    """OpenAI's routes for the language models of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer_request(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None = None
    ) -> Answer:
        """Return the response body, or the events of a stream. Raises ServingError.

        task: the id of the calling task; None if anybody may call.
        """
        match scope["path"].rstrip("/").split("/"):
            case ["", "v1", "models"]:
                check_method(scope["method"], "GET")
                names = await asyncio.to_thread(self._registry.list_language_models, task)
                return {"object": "list", "data": [_describe_model(name) for name in names]}
            case ["", "v1", "models", name]:
                check_method(scope["method"], "GET")
                await self._find_model(name, task)
                return _describe_model(name)
            case ["", "v1", "chat", "completions"]:
                return await self._answer_chat(scope, body, receive, task)
            case ["", "v1", "responses"]:
                return await self._answer_responses(scope, body, receive, task)
            case ["", "v1", "completions"]:
                return await self._answer_completion(scope, body, receive, task)
        raise NotFoundError(NO_ROUTE_MESSAGE)

    async def _find_model(self, name: str, task: int | None) -> LanguageModel:
        model = self._registry.find_recent(name, task)
        if model is None:  # a thread, because the database may be asked
            try:
                model = await asyncio.to_thread(self._registry.get, name, task)
            except NotFoundError:
                raise UnknownModelError(
                    f"There is no model {name!r} here. GET /v1/models lists them."
                ) from None
        if not isinstance(model, LanguageModel):
            raise BadRequestError(
                f"{name} writes no texts. Ask it at /models/{name}/predict.",
                fields={"model": "is no language model"},
            )
        return model

    async def _answer_chat(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None
    ) -> Answer:
        check_method(scope["method"], "POST")
        check_size(body, MAX_BODY_BYTES)
        deadline = time.monotonic() + read_deadline_seconds(scope, WAIT_SECONDS)
        request = read_request(ChatRequest, parse_json(body))
        model = await self._find_model(request.model, task)
        listener = _listen_to_chat(model, request, deadline, receive)
        call = request.call.name if request.call else ""
        reply = Reply("chat.completion", request.model, model.digest, model.tokenizer, call)
        return await listener.build_answer(
            reply, stream=request.stream, usage_reports=request.usage_reports
        )

    async def _answer_responses(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None
    ) -> Answer:
        check_method(scope["method"], "POST")
        check_size(body, MAX_BODY_BYTES)
        deadline = time.monotonic() + read_deadline_seconds(scope, WAIT_SECONDS)
        request = read_request(ResponsesRequest, parse_json(body))
        chat = request.to_chat()
        model = await self._find_model(request.model, task)
        listener = _listen_to_chat(model, chat, deadline, receive)
        reply = ResponsesReply(request.model, request, chat.call.name if chat.call else "")
        return await listener.build_answer(reply, stream=request.stream, usage_reports="last")

    async def _answer_completion(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None
    ) -> Answer:
        check_method(scope["method"], "POST")
        check_size(body, MAX_BODY_BYTES)
        deadline = time.monotonic() + read_deadline_seconds(scope, WAIT_SECONDS)
        request = read_request(CompletionRequest, parse_json(body))
        model = await self._find_model(request.model, task)
        sampling, is_prompt_reported, prompts = (
            request.build_sampling(),
            bool(request.echo),
            request.prompts,
        )

        def begin(prompt: str | list[int], on_piece: PieceCallback) -> Conversation:
            ids = model.encode(prompt) if isinstance(prompt, str) else prompt
            return model.queue_completion(
                ids, sampling, on_piece, deadline, is_prompt_reported=is_prompt_reported
            )

        listener = _Listener([partial(begin, prompt) for prompt in prompts], receive)
        reply = Reply("text_completion", request.model, model.digest, model.tokenizer)
        return await listener.build_answer(
            reply,
            stream=request.stream,
            usage_reports=request.usage_reports,
            is_prompt_reported=is_prompt_reported,
        )


def _listen_to_chat(
    model: LanguageModel, request: ChatRequest, deadline: float, receive: Receive
) -> "_Listener":
    """Return a listener for a chat's answer. The model is not called yet."""
    messages, sampling = request.list_messages(), request.build_sampling()
    return _Listener(
        [lambda on_piece: model.queue_chat(messages, sampling, on_piece, deadline)], receive
    )


class _Listener:
    """A receiver, in the event loop, of pieces from the batch's thread.

    It stops when the caller disconnects.
    """

    def __init__(
        self, begin: Sequence[Callable[[PieceCallback], Conversation]], receive: Receive
    ) -> None:
        """Prepare to receive the pieces of several conversations.

        begin: functions that each submit one conversation, given the callback for its pieces.
        """
        self._begin_functions, self._receive = begin, receive
        self._loop = asyncio.get_running_loop()
        self._piece_queue: asyncio.Queue[tuple[int, Piece | Exception]] = asyncio.Queue()
        self._conversations: list[Conversation] = []

    async def build_answer(
        self,
        reply: Reply | ResponsesReply,
        *,
        stream: bool | None,
        usage_reports: UsageReporting,
        is_prompt_reported: bool = False,
    ) -> Answer:
        """Submit the conversations and return the body of the response.

        With `stream`, return the events as soon as the first piece has arrived. usage_reports: when
        the events report the token counts.

        Raises ServingError.
        """
        disconnect_task = self._loop.create_task(
            _wait_for_disconnect(self._receive, self._cancel_conversations)
        )
        try:
            await asyncio.to_thread(self._submit_conversations)
            if stream:
                first = await self._take_next()
                return self._stream_events(reply, first[1], usage_reports, disconnect_task)
            return reply.build_body(await self._collect_whole(), is_prompt_reported)
        except BaseException:
            self._cancel_conversations()
            raise
        finally:
            # A stream goes on after this function; `_stream_events` ends the watch then.
            if not stream:
                disconnect_task.cancel()

    def _submit_conversations(self) -> None:
        for number, begin in enumerate(self._begin_functions):
            self._conversations.append(begin(partial(self._receive_piece, number)))

    def _receive_piece(self, number: int, piece: Piece | Exception) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._piece_queue.put_nowait, (number, piece))

    async def _take_next(self) -> tuple[int, Piece]:
        number, piece = await self._piece_queue.get()
        if isinstance(piece, ServingError):
            raise piece
        if isinstance(piece, Exception):
            raise ServingError(FAILED_MESSAGE) from piece
        return number, piece

    async def _collect_whole(self) -> list[tuple[Conversation, str, EndReason]]:
        texts = [""] * len(self._conversations)
        reasons: dict[int, EndReason] = {}
        while len(reasons) < len(texts):
            number, piece = await self._take_next()
            texts[number] += piece.text
            if piece.reason:
                reasons[number] = piece.reason
        numbers = range(len(texts))
        return [(self._conversations[n], texts[n], reasons[n]) for n in numbers]

    async def _stream_events(
        self,
        reply: Reply | ResponsesReply,
        piece: Piece,
        usage_reports: UsageReporting,
        disconnect_task: "asyncio.Task[None]",
    ) -> AsyncIterator[bytes]:
        (conversation,) = self._conversations
        try:
            for line in reply.build_first_events():
                yield line
            while True:
                usage_counts = (
                    count_usage(conversation, piece.answer_token_count)
                    if usage_reports == "always"
                    else None
                )
                for line in reply.build_piece_events(piece, usage_counts):
                    yield line
                if piece.reason:
                    break
                piece = (await self._take_next())[1]
            for line in reply.build_last_events(conversation, usage_reports):
                yield line
        except ServingError as error:  # the status is sent already
            yield reply.build_error_event(error)
        finally:
            disconnect_task.cancel()
            self._cancel_conversations()

    def _cancel_conversations(self) -> None:
        for conversation in self._conversations:
            conversation.cancel()
        # Wakes whoever waits for the next piece.
        self._piece_queue.put_nowait((0, ServingError("The caller went away.")))


async def _wait_for_disconnect(
    receive: Callable[[], Awaitable[Message]], on_disconnect: Callable[[], None]
) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    on_disconnect()


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dynabench"}
