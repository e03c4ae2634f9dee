"""What is shown of work that takes long: a bar on a terminal, elsewhere plain lines."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tqdm import tqdm


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


@contextmanager
def bytes_shown(
    title: str, size: int, done: int, *, is_shown: bool
) -> Iterator[Callable[[int], object]]:
    """Yield a function to tell how many of `size` bytes are there, from `done` on, which shows it.

    Before it is called nothing is shown, as what is refused has no bytes.
    """
    with ExitStack() as stack:
        begun: list[Any] = []

        def tell(now: int) -> None:
            if not begun:
                begun.append(stack.enter_context(_bar(title, size, done, is_shown)))
            begun[0].update(now - begun[0].n)

        yield tell


def _bar(title: str, size: int, done: int, is_shown: bool) -> Any:
    """Return the bar, or one that is not seen after a line that says as much."""
    if is_shown and not sys.stderr.isatty():
        known = f": {_amount(size)}" if size else ""
        _say(f"{title}{known}" + (f", {_amount(done)} of it there" if done else ""))
    is_off = not (is_shown and sys.stderr.isatty())
    return tqdm(
        total=size or None, initial=done, desc=title, unit="B", unit_scale=True, disable=is_off
    )


@contextmanager
def lines_shown(*, is_shown: bool) -> Iterator[Callable[[str], object]]:
    """Yields a function to call with each line; a terminal shows the newest and the time so far."""
    if not (is_shown and sys.stderr.isatty()):
        said: list[str] = []

        def tell(text: str) -> None:
            if is_shown and [text] != said:
                said[:] = [text]
                _say(text)

        yield tell
        return
    with tqdm(bar_format="{desc} [{elapsed}]") as line:
        yield line.set_description_str
