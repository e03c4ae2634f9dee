"""From tokens to text, piece by piece, up to a stop text."""

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream


class Text:
    """The text of one answer as it grows. `is_stopped`: a stop text came, and is not part of it."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, [text for text in stop if text]
        self._stream = DecodeStream(skip_special_tokens=True)
        self._held = ""
        self.is_stopped = False

    def add(self, token: int) -> str:
        """Add a token; return whole characters that may be shown and begin no stop text, or ""."""
        self._held += self._stream.step(self._tokenizer, token) or ""
        ends = [at for at in (self._held.find(text) for text in self._stop) if at >= 0]
        self.is_stopped = bool(ends)
        length = min(ends) if ends else len(self._held) - held_back(self._held, self._stop)
        shown, self._held = self._held[:length], "" if ends else self._held[length:]
        return shown

    def rest(self) -> str:
        """Return what was held back, when no more tokens come."""
        shown, self._held = self._held, ""
        return shown


def held_back(text: str, stop: Sequence[str]) -> int:
    """Count the characters at the end of a text that may begin a stop text."""
    longest = max((len(one) for one in stop), default=1) - 1
    sizes = range(min(longest, len(text)), 0, -1)
    ends = (size for size in sizes if any(one.startswith(text[-size:]) for one in stop))
    return next(ends, 0)
