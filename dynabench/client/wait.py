"""Waiting for what goes on at the server: a flow."""

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from dynabench.client.errors import ServerError, TimedOut, Unreachable
from dynabench.client.flow import Flow, Pause
from dynabench.client.http import Asking
from dynabench.client.progress import lines_shown

T = TypeVar("T")
LONGEST_PAUSE = 10.0
MOST_SILENCE = 10
"""So many times in a row the server may not answer while we wait."""


class Following(Asking):
    """What asks again until something is over."""

    def _follow(
        self,
        ask: Callable[[], Flow[T]],
        stands: Callable[[T], tuple[str, bool]],
        timeout: float | None,
    ) -> Flow[T]:
        """What `ask` brings once it is over.

        stands: how it stands, as a sentence that is shown, and whether it is over. timeout: seconds
        to wait at most; None: no end. Raises TimedOut.
        """
        begun, silence, pause = monotonic(), 0, 1.0
        with lines_shown(is_shown=self.progress) as tell:
            while True:
                try:
                    found = yield from ask()
                    silence = 0
                except (Unreachable, ServerError) as error:
                    silence += 1
                    if silence > MOST_SILENCE:
                        raise
                    tell(f"{error.message} Trying again.")
                else:
                    sentence, is_over = stands(found)
                    tell(sentence)
                    if is_over:
                        return found
                if timeout is not None and monotonic() - begun + pause > timeout:
                    raise TimedOut(f"Not over after {timeout:g} seconds. Ask for it again later.")
                yield Pause(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)
