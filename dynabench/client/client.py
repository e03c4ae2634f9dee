"""The two clients: all methods, and how a flow of them is run."""

from abc import ABC, abstractmethod
from asyncio import sleep as sleep_awaiting
from asyncio import to_thread
from time import sleep
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from dynabench.client.boards import Boards
from dynabench.client.communities import Communing
from dynabench.client.credentials import api_key, server_url
from dynabench.client.flow import Awaiting, Blocking, Call, Flow, Pause, Step, Work
from dynabench.client.hooks import Hooks
from dynabench.client.leasing import Leasing
from dynabench.client.models import Models
from dynabench.client.moderating import Moderating
from dynabench.client.owning import Owning
from dynabench.client.releasing import Releasing
from dynabench.client.tasks import Tasks
from dynabench.client.teams import Teaming
from dynabench.client.writing import Writing

T = TypeVar("T")
TIMEOUT = httpx.Timeout(120, connect=10)


class Methods(
    Tasks,
    Models,
    Teaming,
    Boards,
    Communing,
    Writing,
    Owning,
    Releasing,
    Moderating,
    Hooks,
    Leasing,
    ABC,
):
    """What both clients can do, and their settings.

    api_key: also of DYNABENCH_API_KEY, or of `dynabench login`; without one only what is public is
    read. url: of the server, also of DYNABENCH_URL, else http://127.0.0.1:8000. retries: of a
    request that met no answer or a busy server. progress: whether progress is shown (on stderr).
    transport: another way to send requests, such as a mock one.
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
        self.server, self.retries, self.progress = server_url(url), retries, progress
        self._open(transport, api_key)

    @abstractmethod
    def _open(self, transport: Any, key: str | None) -> None:
        """Make the connections."""

    def _options(self, key: str | None) -> dict[str, Any]:
        """Of an httpx client. Redirects are not followed: the key is for this server alone."""
        found = api_key(self.server, key)
        return {
            "base_url": f"{self.server}/api/v1",
            "headers": {"Authorization": f"Bearer {found}"} if found else {},
            "timeout": TIMEOUT,
        }


def _arguments(call: Call) -> dict[str, Any]:
    """Of `httpx.Client.stream`."""
    arguments = {"params": call.params or None, "headers": call.headers, "content": call.content}
    return arguments if call.json is None else {**arguments, "json": call.json}


class DynabenchClient(Methods, Blocking):
    """A Dynabench server for programs; every method blocks until it is done."""

    def _open(self, transport: Any, key: str | None) -> None:
        self._http = httpx.Client(transport=transport, **self._options(key))

    def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""
        try:
            step = next(flow)
            while True:
                try:
                    found = self._do(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(found)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            flow.close()

    def _do(self, step: Step) -> Any:
        match step:
            case Call():
                return self._answer(step)
            case Pause():
                sleep(step.seconds)
            case Work():
                return step.do()

    def _answer(self, call: Call) -> httpx.Response:
        with self._http.stream(call.method, call.path, **_arguments(call)) as response:
            if call.into and response.is_success:
                take = call.into(response)
                for block in response.iter_bytes():
                    take(block)
            else:
                response.read()
            return response

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncDynabenchClient(Methods, Awaiting):
    """The same methods, each to be awaited."""

    def _open(self, transport: Any, key: str | None) -> None:
        self._http = httpx.AsyncClient(transport=transport, **self._options(key))

    async def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""
        try:
            step = next(flow)
            while True:
                try:
                    found = await self._do(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(found)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            flow.close()

    async def _do(self, step: Step) -> Any:
        match step:
            case Call():
                return await self._answer(step)
            case Pause():
                await sleep_awaiting(step.seconds)
            case Work():
                return await to_thread(step.do)

    async def _answer(self, call: Call) -> httpx.Response:
        async with self._http.stream(call.method, call.path, **_arguments(call)) as response:
            if call.into and response.is_success:
                take = call.into(response)
                async for block in response.aiter_bytes():
                    take(block)
            else:
                await response.aread()
            return response

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await self.close()
