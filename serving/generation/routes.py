"""OpenAI's routes: /v1/models, /v1/chat/completions, /v1/completions."""

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
    deadline_seconds,
    parse_json,
)
from serving.errors import (
    BadRequestError,
    ServingError,
    UnknownError,
    UnknownModelError,
)
from serving.generation.conversation import Conversation, Piece, Reason, Tell
from serving.generation.model import LanguageModel
from serving.generation.replies import (
    DONE,
    Reply,
    as_openai_error,
    event,
    usage_of,
)
from serving.generation.requests import (
    ChatRequest,
    CompletionRequest,
    Usage,
    read_request,
)

FAILED = "The model failed on this input. The server's log says why."
NO_ROUTE = (
    "There is no such route. Language models are asked at /v1/chat/completions or "
    "/v1/completions, and listed at /v1/models. Where your client asks /v1/responses, set it to "
    "chat completions."
)
WAIT_SECONDS = 300.0  # of callers that name no deadline
Answer = dict[str, Any] | AsyncIterator[bytes]


class Models(Protocol):
    """The methods of the registry that the routes need."""

    def recent(self, name: str, task: int | None = None) -> Any: ...
    def get(self, name: str, task: int | None = None) -> Any: ...
    def writers(self, task: int | None = None) -> list[str]: ...


class OpenAIRoutes:
    """OpenAI's routes for the language models of a registry."""

    def __init__(self, registry: Models) -> None:
        self._registry = registry

    async def answer(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None = None
    ) -> Answer:
        """Return the response body, or the events of a stream. Raises ServingError.

        task: the id of the calling task; None for any caller.
        """
        match scope["path"].rstrip("/").split("/"):
            case ["", "v1", "models"]:
                check_method(scope["method"], "GET")
                names = await asyncio.to_thread(self._registry.writers, task)
                return {"object": "list", "data": [_model(name) for name in names]}
            case ["", "v1", "models", name]:
                check_method(scope["method"], "GET")
                await self._find(name, task)
                return _model(name)
            case ["", "v1", "chat", "completions"]:
                return await self._chat(scope, body, receive, task)
            case ["", "v1", "completions"]:
                return await self._complete(scope, body, receive, task)
        raise UnknownError(NO_ROUTE)

    async def _find(self, name: str, task: int | None) -> LanguageModel:
        model = self._registry.recent(name, task)
        if model is None:  # a thread, because the database may be asked
            try:
                model = await asyncio.to_thread(self._registry.get, name, task)
            except UnknownError:
                raise UnknownModelError(
                    f"There is no model {name!r} here. GET /v1/models lists them."
                ) from None
        if not isinstance(model, LanguageModel):
            raise BadRequestError(
                f"{name} writes no texts. Ask it at /models/{name}/predict.",
                fields={"model": "is no language model"},
            )
        return model

    async def _chat(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None
    ) -> Answer:
        check_method(scope["method"], "POST")
        check_size(body, MAX_BODY_BYTES)
        deadline = time.monotonic() + deadline_seconds(scope, WAIT_SECONDS)
        request = read_request(ChatRequest, parse_json(body))
        model = await self._find(request.model, task)
        messages, sampling = [m.plain for m in request.messages], request.sampling()
        listener = _Listener([lambda tell: model.chat(messages, sampling, tell, deadline)], receive)
        call = request.call.name if request.call else ""
        reply = Reply("chat.completion", request.model, model.digest, model.tokenizer, call)
        return await listener.answer(reply, stream=request.stream, usage=request.usage)

    async def _complete(
        self, scope: Message, body: bytearray, receive: Receive, task: int | None
    ) -> Answer:
        check_method(scope["method"], "POST")
        check_size(body, MAX_BODY_BYTES)
        deadline = time.monotonic() + deadline_seconds(scope, WAIT_SECONDS)
        request = read_request(CompletionRequest, parse_json(body))
        model = await self._find(request.model, task)
        sampling, echo, prompts = request.sampling(), bool(request.echo), request.prompts

        def begin(prompt: str | list[int], tell: Tell) -> Conversation:
            ids = model.encode(prompt) if isinstance(prompt, str) else prompt
            return model.complete(ids, sampling, tell, deadline, echo=echo)

        listener = _Listener([partial(begin, prompt) for prompt in prompts], receive)
        reply = Reply("text_completion", request.model, model.digest, model.tokenizer)
        return await listener.answer(reply, stream=request.stream, usage=request.usage, echo=echo)


class _Listener:
    """A receiver, in the event loop, of pieces from the batch's thread until the caller leaves."""

    def __init__(self, begin: Sequence[Callable[[Tell], Conversation]], receive: Receive) -> None:
        """Prepare to receive the pieces of several conversations.

        begin: functions that each submit one conversation, given the callback for its pieces.
        """
        self._begin, self._receive = begin, receive
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Queue[tuple[int, Piece | Exception]] = asyncio.Queue()
        self._written: list[Conversation] = []

    async def answer(
        self, reply: Reply, *, stream: bool | None, usage: Usage, echo: bool = False
    ) -> Answer:
        """Return the body or, with `stream`, the events, once the first piece is there.

        Raises ServingError.
        """
        disconnect_task = self._loop.create_task(_disconnected(self._receive, self._let_go))
        try:
            await asyncio.to_thread(self._submit)
            if stream:
                first = await self._next()
                return self._events(reply, first[1], usage, disconnect_task)
            return reply.whole(await self._whole(), echo)
        except BaseException:
            self._let_go()
            raise
        finally:
            # A stream goes on after this function; `_events` ends the watch then.
            if not stream:
                disconnect_task.cancel()

    def _submit(self) -> None:
        for number, begin in enumerate(self._begin):
            self._written.append(begin(partial(self._hear, number)))

    def _hear(self, number: int, piece: Piece | Exception) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._told.put_nowait, (number, piece))

    async def _next(self) -> tuple[int, Piece]:
        number, piece = await self._told.get()
        if isinstance(piece, ServingError):
            raise piece
        if isinstance(piece, Exception):
            raise ServingError(FAILED) from piece
        return number, piece

    async def _whole(self) -> list[tuple[Conversation, str, Reason]]:
        texts = [""] * len(self._written)
        reasons: dict[int, Reason] = {}
        while len(reasons) < len(texts):
            number, piece = await self._next()
            texts[number] += piece.text
            if piece.reason:
                reasons[number] = piece.reason
        numbers = range(len(texts))
        return [(self._written[n], texts[n], reasons[n]) for n in numbers]

    async def _events(
        self, reply: Reply, piece: Piece, usage: Usage, gone: "asyncio.Task[None]"
    ) -> AsyncIterator[bytes]:
        (conversation,) = self._written
        try:
            for line in reply.first():
                yield line
            while True:
                used = usage_of(conversation, piece.written) if usage == "always" else None
                for line in reply.piece(piece, used):
                    yield line
                if piece.reason:
                    break
                piece = (await self._next())[1]
            if usage != "never":
                yield reply.usage(conversation)
            yield DONE
        except ServingError as error:  # the status is sent already
            yield event(as_openai_error(error))
        finally:
            gone.cancel()
            self._let_go()

    def _let_go(self) -> None:
        for conversation in self._written:
            conversation.cancel()
        # Wakes whoever waits for the next piece.
        self._told.put_nowait((0, ServingError("The caller went away.")))


async def _disconnected(
    receive: Callable[[], Awaitable[Message]], on_disconnect: Callable[[], None]
) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    on_disconnect()


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dynabench"}
