"""Convert tokens to text, piece by piece, up to a stop text."""

from collections.abc import Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream


class AnswerText:
    """The growing text of an answer.

    is_stopped: whether a stop text has occurred, which is not part of the answer.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, [text for text in stop if text]
        self._stream = DecodeStream(skip_special_tokens=True)
        self._withheld_text = ""
        self.is_stopped = False

    def add_token(self, token: int) -> str:
        """Add a token; return the new characters that cannot be part of a stop text, or ""."""
        self._withheld_text += self._stream.step(self._tokenizer, token) or ""
        stop_positions = [
            self._withheld_text.find(text) for text in self._stop if text in self._withheld_text
        ]
        if stop_positions:
            self.is_stopped = True
            shown_text, self._withheld_text = self._withheld_text[: min(stop_positions)], ""
            return shown_text
        # The end may be the beginning of a stop text, which must not be shown.
        length = len(self._withheld_text) - count_withheld_chars(self._withheld_text, self._stop)
        shown_text, self._withheld_text = self._withheld_text[:length], self._withheld_text[length:]
        return shown_text

    def take_withheld_text(self) -> str:
        """Return the withheld characters once no more tokens follow."""
        withheld_text, self._withheld_text = self._withheld_text, ""
        return withheld_text


def count_withheld_chars(text: str, stop: Sequence[str]) -> int:
    """Return the number of characters at a text's end that may begin a stop text."""
    # All of a stop text but its last character may be waiting.
    longest = max(map(len, stop), default=1) - 1
    for size in range(min(longest, len(text)), 0, -1):
        end = text[-size:]
        if any(stop_text.startswith(end) for stop_text in stop):
            return size
    return 0
