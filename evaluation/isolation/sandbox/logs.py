"""Keep the end of a model's log: bounded, harmless, without texts that readers may not see."""

import re
from collections.abc import Iterable

REMOVED_LINE_TEXT = "[a line that repeats a text of the examples was taken out]"
REDACTION = "[secret]"
MIN_MATCH_CHARS = 12  # characters; shorter values are words that may occur anywhere
BLOCK_CHARS = 24  # consecutive characters that cannot be a coincidence
_CONTROL_PATTERN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)


class Tail:
    """The last bytes of a stream, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        """Append the next bytes of the stream."""
        self.size += len(data)
        self._bytes += data
        if len(self._bytes) > 2 * self.limit:  # rarely, so each byte is moved once or twice
            del self._bytes[: -self.limit]

    def get_text(self) -> str:
        """Return the stored bytes as visible text.

        If bytes were dropped, the first line says how many.
        """
        text = show_control_characters(bytes(self._bytes[-self.limit :]).decode(errors="replace"))
        dropped_count = self.size - min(self.size, self.limit)
        if not dropped_count:
            return text
        return f"[{dropped_count} bytes before this were not kept]\n{text}"


def show_control_characters(text: str) -> str:
    r"""Replace control characters with visible ones, which do not affect terminals and pages.

    >>> show_control_characters("\x1b[31mred\r\n")
    '␛[31mred\n'
    """
    return _CONTROL_PATTERN.sub(_show_character, re.sub("\r+\n?", "\n", text))


def _show_character(match: re.Match[str]) -> str:
    """Return the visible replacement of a control character."""
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the block "Control Pictures"
    if code == 0x7F:
        return "␡"
    return f"\\u{code:04x}"


def redact_log(log: str, *, texts: Iterable[str], secrets: Iterable[str] = ()) -> str:
    """Return the log for a submitter, without secrets and without lines that repeat examples.

    texts: the values of the examples' fields, consumed one at a time. A line is removed if it
    contains a whole value of at least MIN_MATCH_CHARS characters, or an aligned block of
    BLOCK_CHARS characters of a longer one. So a line that quotes any 47 consecutive characters of a
    value is always removed. Text encoded by the model is not detected.
    """
    for secret in secrets:
        log = log.replace(secret, REDACTION)
    fragments = _find_repeated_fragments(log, texts)
    lines = []
    for line in log.split("\n"):
        if any(fragment in line for fragment in fragments):
            line = REMOVED_LINE_TEXT
        lines.append(line)
    return "\n".join(lines)


def _find_repeated_fragments(log: str, texts: Iterable[str]) -> set[str]:
    """Return the fragments of the texts that occur in the log."""
    # Most texts share no start with the log, so looking into this set saves the search.
    starts = {
        log[position : position + MIN_MATCH_CHARS]
        for position in range(len(log) - MIN_MATCH_CHARS + 1)
    }
    fragments = set()
    for text in texts:
        for line in show_control_characters(text).split("\n"):
            size = min(len(line), BLOCK_CHARS)
            for position in range(0, len(line) - size + 1, BLOCK_CHARS):
                fragment = line[position : position + size]
                if fragment[:MIN_MATCH_CHARS] in starts and fragment in log:
                    fragments.add(fragment)
    return fragments
