"""From tokens to text, piece by piece, up to a stop text."""

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream


class Text:
    """The growing text of an answer. is_stopped: whether a stop text came, which is left out."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, [text for text in stop if text]
        self._stream = DecodeStream(skip_special_tokens=True)
        self._held = ""
        self.is_stopped = False

    def add(self, token: int) -> str:
        """Add a token; return the characters that are complete and begin no stop text, or ""."""
        self._held += self._stream.step(self._tokenizer, token) or ""
        stop_places = [self._held.find(text) for text in self._stop if text in self._held]
        if stop_places:
            self.is_stopped = True
            whole, self._held = self._held[: min(stop_places)], ""
            return whole
        # The end may be the beginning of a stop text, which must not be shown.
        length = len(self._held) - held_back(self._held, self._stop)
        whole, self._held = self._held[:length], self._held[length:]
        return whole

    def rest(self) -> str:
        """Return the withheld characters after the last token."""
        rest, self._held = self._held, ""
        return rest


def held_back(text: str, stop: Sequence[str]) -> int:
    """Return the number of characters at a text's end that may begin a stop text."""
    longest = max(map(len, stop), default=1) - 1
    for size in range(min(longest, len(text)), 0, -1):
        end = text[-size:]
        if any(stop_text.startswith(end) for stop_text in stop):
            return size
    return 0
