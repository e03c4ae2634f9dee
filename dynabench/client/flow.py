"""How a method is written once and called both ways, blocking and awaited.

A method is a *flow*: a generator that yields steps (a call, a pause, work with files). The client
does each step and sends its result into the flow, or raises the step's error in it.
`DynabenchClient.run` blocks, `AsyncDynabenchClient.run` awaits; the flows themselves know of
neither.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, overload

import httpx

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Open = Callable[[httpx.Response], Callable[[bytes], object]]
"""Called with the head of a good answer; returns what is called with each block of its body."""


@dataclass(frozen=True)
class Call:
    """A request to the API.

    path: below /api/v1/. into: receives the body of a successful response, instead of the result.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    into: Open | None = None


@dataclass(frozen=True)
class Pause:
    """A request of a flow to wait; the value is in seconds."""

    seconds: float


@dataclass(frozen=True)
class Work:
    """A local call that may take long, such as reading large files."""

    do: Callable[[], Any]


Step = Call | Pause | Work
Flow = Generator[Step, Any, T]


class BlockingClient(ABC):
    """A client that blocks until a flow ends."""

    @abstractmethod
    def run(self, flow: Flow[T]) -> T:
        """Run a flow and return its result."""


class AsyncClient(ABC):
    """A client that runs flows asynchronously."""

    @abstractmethod
    async def run(self, flow: Flow[T]) -> T:
        """Run a flow and return its result."""


class method(Generic[P, R]):
    """A decorator that turns a flow into a method of both clients: blocking or awaited."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[R]]) -> None:
        """Wrap a flow."""

        @wraps(flow)
        def called(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(flow(client, *args, **kwargs))

        # help() and editors show the annotation of the result, not of the flow.
        result = get_args(flow.__annotations__["return"])[-1]
        called.__annotations__ = {**flow.__annotations__, "return": result}
        called.__signature__ = signature(flow).replace(return_annotation=result)  # type: ignore[attr-defined]
        self.called = called
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, client: None, owner: object) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, client: BlockingClient, owner: object) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, client: AsyncClient, owner: object
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: object) -> Any:
        """Return the method, bound to a client; of a class the function, which has its help."""
        # As functions do: bound to the instance.
        return self.called if client is None else MethodType(self.called, client)
