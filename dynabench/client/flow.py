"""Methods that are written once and called in both ways, blocking and awaited.

A method is a *flow*: a generator that yields steps (a call, a pause, work with files). The client
performs each step and sends its result into the flow, or raises the step's error in the flow.
`DynabenchClient.run` blocks and `AsyncDynabenchClient.run` awaits; the flows are the same.
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
OpenSink = Callable[[httpx.Response], Callable[[bytes], object]]
"""A function that receives a successful response before its body is read.

It returns the function that receives each block of the body.
"""


@dataclass(frozen=True)
class Call:
    """A request to the API.

    path: the path below /api/v1/. open_sink: receives the body of a successful response; the
    response itself then has no body.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    open_sink: OpenSink | None = None


@dataclass(frozen=True)
class Pause:
    """A step that makes the client wait."""

    seconds: float


@dataclass(frozen=True)
class Work:
    """A step that calls a local function that may take long, such as one that reads large files."""

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
        """Wrap a flow in a method that runs it."""

        @wraps(flow)
        def run_method(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(flow(client, *args, **kwargs))

        # help() and editors show the annotation of the result, not of the flow.
        result = get_args(flow.__annotations__["return"])[-1]
        run_method.__annotations__ = {**flow.__annotations__, "return": result}
        run_method.__signature__ = signature(flow).replace(return_annotation=result)  # type: ignore[attr-defined]
        self.function = run_method
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
        """Return the method bound to a client, or the plain function if accessed on the class."""
        # As functions do: bound to the instance.
        return self.function if client is None else MethodType(self.function, client)
