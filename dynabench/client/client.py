"""The blocking and the asynchronous client, which run the flows of all methods."""

from abc import ABC, abstractmethod
from asyncio import sleep as sleep_awaiting
from asyncio import to_thread
from time import sleep
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from dynabench.client.boards import Boards
from dynabench.client.communities import CommunityMethods
from dynabench.client.credentials import find_api_key, find_server_url
from dynabench.client.flow import AsyncClient, BlockingClient, Call, Flow, Pause, Step, Work
from dynabench.client.leasing import Leasing
from dynabench.client.models import Models
from dynabench.client.moderating import Moderating
from dynabench.client.owning import Owning
from dynabench.client.plain import Plain
from dynabench.client.releasing import Releasing
from dynabench.client.tasks import Tasks
from dynabench.client.writing import Writing

T = TypeVar("T")
# Long for an answer, as the server may ask a model meanwhile; short for a server that is away.
TIMEOUT = httpx.Timeout(120, connect=10)


class Methods(
    Plain,
    Tasks,
    Models,
    Boards,
    CommunityMethods,
    Writing,
    Owning,
    Releasing,
    Moderating,
    Leasing,
    ABC,
):
    """The base class of both clients, with their methods and settings.

    api_key: by default DYNABENCH_API_KEY, or the key of `dynabench login`. Without a key you can
    read only public data.
    url: the server's URL; by default DYNABENCH_URL, or http://127.0.0.1:8000.
    retries: how often to resend a request if the server is busy or does not respond.
    progress: whether to show progress (on stderr).
    transport: another httpx transport, such as a mock one.
    """

    def __init__(
        self,
        api_key: str | None = None,
        url: str | None = None,
        *,
        retries: int = 5,
        progress: bool = True,
        transport: Any = None,
    ) -> None:
        """Create a client without sending a request."""
        self.server, self.retries, self.progress = find_server_url(url), retries, progress
        self._open(transport, api_key)

    @abstractmethod
    def _open(self, transport: Any, key: str | None) -> None:
        """Create the HTTP client."""

    def _build_options(self, key: str | None) -> dict[str, Any]:
        """Return the options of an httpx client."""
        # Redirects are not followed (httpx's default): the key is for this server only.
        api_key = find_api_key(self.server, key)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        return {"base_url": f"{self.server}/api/v1", "headers": headers, "timeout": TIMEOUT}


def _build_arguments(call: Call) -> dict[str, Any]:
    """Return the arguments of `httpx.Client.stream` for a call."""
    arguments = {"params": call.params or None, "headers": call.headers, "content": call.content}
    if call.json is not None:
        arguments["json"] = call.json
    return arguments


class DynabenchClient(Methods, BlockingClient):
    """A client for a Dynabench server whose methods block until they are done."""

    def _open(self, transport: Any, key: str | None) -> None:
        """Create the blocking HTTP client."""
        self._http = httpx.Client(transport=transport, **self._build_options(key))

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its result.

        Performs each step that the flow yields, and sends the result into the flow or raises
        the error inside it.
        """
        try:
            # The first step; each later one is what the flow yields after it got a result.
            step = next(flow)
            while True:
                try:
                    result = self._do_step(step)
                except Exception as error:
                    # The flow decides: it may try again, or let the error reach the caller.
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            # Also where the caller was interrupted: the flow closes its files and bars.
            flow.close()

    def _do_step(self, step: Step) -> Any:
        """Perform a step of a flow and return its result."""
        match step:
            case Call():
                return self._send_call(step)
            case Pause():
                sleep(step.seconds)
            case Work():
                return step.do()

    def _send_call(self, call: Call) -> httpx.Response:
        """Send a request and return the response.

        The response includes the body, unless `call.open_sink` takes the body of a successful
        response.
        """
        with self._http.stream(call.method, call.path, **_build_arguments(call)) as response:
            # An error's body is small, and is read for its message.
            if call.open_sink and response.is_success:
                receive_block = call.open_sink(response)
                for block in response.iter_bytes():
                    receive_block(block)
            else:
                response.read()
            return response

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client, which is closed at the end of the `with` block."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close the client."""
        self.close()


class AsyncDynabenchClient(Methods, AsyncClient):
    """A client for a Dynabench server whose methods are awaited."""

    def _open(self, transport: Any, key: str | None) -> None:
        """Create the asynchronous HTTP client."""
        self._http = httpx.AsyncClient(transport=transport, **self._build_options(key))

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its result. See `DynabenchClient.run`."""
        try:
            step = next(flow)
            while True:
                try:
                    result = await self._do_step(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            flow.close()

    async def _do_step(self, step: Step) -> Any:
        """Perform a step of a flow and return its result. File operations run in a thread."""
        match step:
            case Call():
                return await self._send_call(step)
            case Pause():
                await sleep_awaiting(step.seconds)
            case Work():
                return await to_thread(step.do)

    async def _send_call(self, call: Call) -> httpx.Response:
        """Send a request and return the response.

        The response includes the body, unless `call.open_sink` takes the body of a successful
        response.
        """
        async with self._http.stream(call.method, call.path, **_build_arguments(call)) as response:
            if call.open_sink and response.is_success:
                receive_block = call.open_sink(response)
                async for block in response.aiter_bytes():
                    receive_block(block)
            else:
                await response.aread()
            return response

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return the client, which is closed at the end of the `async with` block."""
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()
