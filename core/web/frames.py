"""Avoid repeated memory allocation for the frames of deep calls.

Python stores frames in chunks of 16 KB. It requests a chunk from the system when needed, and
returns it once the chunk has no frame left. If a loop runs at the end of a chunk, each call in the
loop costs a mmap, page faults and a munmap (CPython issue 142183). Some pages made hundreds of
these calls, which took a seventh of their time.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
FRAME_SLOTS = 66_000
"""The stack size of a frame in slots of 8 bytes, none of which is used.

Such a frame allocates a chunk of 1 MiB and leaves half of it free.
"""


def wrap_with_frame_room(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap `call` so that the frames of the calls below it usually fit into one memory chunk.

    These calls then need no memory from the system. The wrapper's own frame takes half a MiB.
    """

    def run_with_frames(*args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    run_with_frames.__code__ = run_with_frames.__code__.replace(co_stacksize=FRAME_SLOTS)
    return run_with_frames
