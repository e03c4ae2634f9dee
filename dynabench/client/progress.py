"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tqdm import tqdm


def _print_line(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def _format_size(size: int) -> str:
    """Return a size in MB or kB as text."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


@contextmanager
def show_bytes(
    title: str, size: int, start_bytes: int, *, is_shown: bool
) -> Iterator[Callable[[int], object]]:
    """Yield a function that shows the number of bytes transferred, out of `size`.

    start_bytes: the number of bytes already transferred. Shows nothing until the function is
    called, because a refused file transfers nothing.
    """
    # Closes the bar, if there is one, when the file has arrived.
    with ExitStack() as stack:
        bar: Any = None

        def show_line(position: int) -> None:
            nonlocal bar
            if bar is None:
                bar = stack.enter_context(_build_bar(title, size, start_bytes, is_shown))
            # tqdm adds up steps, but the caller knows the position.
            bar.update(position - bar.n)

        yield show_line


def _build_bar(title: str, size: int, start_bytes: int, is_shown: bool) -> Any:
    """Return a progress bar for bytes.

    Without a terminal, print one line with the size and return a hidden bar.
    """
    is_terminal = sys.stderr.isatty()
    # A bar would fill a log with control characters.
    if is_shown and not is_terminal:
        line = title
        if size:
            line += f": {_format_size(size)}"
        if start_bytes:
            line += f", {_format_size(start_bytes)} already transferred"
        _print_line(line)
    is_hidden = not (is_shown and is_terminal)
    return tqdm(
        total=size or None,
        initial=start_bytes,
        desc=title,
        unit="B",
        unit_scale=True,
        disable=is_hidden,
    )


@contextmanager
def show_lines(*, is_shown: bool) -> Iterator[Callable[[str], object]]:
    """Yield a function to call with each progress message.

    A terminal shows the newest message and the elapsed time. Elsewhere, each new message is
    printed.
    """
    if not (is_shown and sys.stderr.isatty()):
        last_text: str | None = None

        def show_line(text: str) -> None:
            nonlocal last_text
            # Logs would fill with the same line, as the client asks every few seconds.
            if is_shown and text != last_text:
                last_text = text
                _print_line(text)

        yield show_line
        return
    with tqdm(bar_format="{desc} [{elapsed}]") as line:
        yield line.set_description_str
