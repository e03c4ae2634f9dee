"""Room for the frames of deep calls.

Python keeps frames in chunks of 16 KB that it takes from the system and gives back with the last
frame in them: where a loop stands at the end of a chunk, each call in it is a mmap, page faults and
a munmap (CPython issue 142183). Some pages took hundreds of them, a seventh of their time.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
SLOTS = 66_000
"""Of 8 bytes, none of which is used: a frame of so many takes a chunk of 1 MiB and leaves half."""


def with_room(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap `call` so that all frames below it fit into one memory chunk; more remain possible."""

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    called.__code__ = called.__code__.replace(co_stacksize=SLOTS)
    return called
