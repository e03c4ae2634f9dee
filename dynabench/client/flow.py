"""How a method is written once and called both ways.

A method is a *flow*: a generator that yields what it wants done (a call, a pause, work with files)
and is sent what came of it, or has raised in it what went wrong. `DynabenchClient.run` does it and
blocks, `AsyncDynabenchClient.run` awaits; the flows themselves know of neither.
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
"""Given the head of a good answer, what takes each block of its body."""


@dataclass(frozen=True)
class Call:
    """A request; `path` is below /api/v1/. into: where a good answer's body goes, if not in it."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    into: Open | None = None


@dataclass(frozen=True)
class Pause:
    """Nothing, for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Work:
    """What may take long on this machine, such as reading large files."""

    do: Callable[[], Any]


Step = Call | Pause | Work
Flow = Generator[Step, Any, T]


class Blocking(ABC):
    """Runs flows to their end."""

    @abstractmethod
    def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""


class Awaiting(ABC):
    """Runs flows while others work."""

    @abstractmethod
    async def run(self, flow: Flow[T]) -> T:
        """What the flow returns."""


class method(Generic[P, R]):
    """Makes a flow a method: one that returns its result, or, of an async client, awaits it."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[R]]) -> None:
        @wraps(flow)
        def called(client: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(flow(client, *args, **kwargs))

        # What help() and editors show is the result of the flow, not the flow.
        result = get_args(flow.__annotations__["return"])[-1]
        called.__annotations__ = {**flow.__annotations__, "return": result}
        called.__signature__ = signature(flow).replace(return_annotation=result)  # type: ignore[attr-defined]
        self.called = called
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, client: None, owner: object) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, client: Blocking, owner: object) -> Callable[P, R]: ...
    @overload
    def __get__(self, client: Awaiting, owner: object) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, client: Any, owner: object) -> Any:
        return self.called if client is None else MethodType(self.called, client)
