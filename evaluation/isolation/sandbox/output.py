"""Parse a sandbox's output as it arrives: first into frames, then into lines. Pure."""

import struct
from collections.abc import Iterator

from evaluation.contract import InvalidOutput

STDOUT, STDERR = 1, 2
_HEADER_STRUCT = struct.Struct(">BxxxL")  # stream, bytes that follow (Docker's attach protocol)


class FrameParser:
    """A parser of Docker's framed stream, which may arrive in pieces of any size."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield pairs: the number of a stream, and the next bytes of this stream."""
        while data:
            if not self._left:  # between two frames: a header, perhaps incomplete, comes next
                missing_count = _HEADER_STRUCT.size - len(self._header)
                self._header, data = self._header + data[:missing_count], data[missing_count:]
                if len(self._header) == _HEADER_STRUCT.size:
                    self._stream, self._left = _HEADER_STRUCT.unpack(self._header)
                    self._header = b""
                continue
            block, data = data[: self._left], data[self._left :]
            self._left -= len(block)
            yield self._stream, block


class LineSplitter:
    """A splitter of a stream into lines, which buffers at most one incomplete line."""

    def __init__(self, line_bytes: int) -> None:
        self.line_bytes = line_bytes
        self.size = self.count = 0
        self._incomplete_line = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are now complete, without their line breaks.

        Raises InvalidOutput if a line is longer than `line_bytes`.
        """
        self.size += len(data)
        pieces = data.split(b"\n")
        incomplete = pieces.pop()  # the text after the last line break, perhaps empty
        for line in pieces:
            yield self._complete_line(line)
        self._incomplete_line += incomplete
        self._check_size(len(self._incomplete_line))

    def flush(self) -> Iterator[bytes]:
        """Yield the last line if it has no line break."""
        if self._incomplete_line:
            yield self._complete_line(b"")

    def _complete_line(self, line_end: bytes) -> bytes:
        line = bytes(self._incomplete_line) + line_end  # its start was in earlier data
        self._incomplete_line.clear()
        self._check_size(len(line))
        self.count += 1
        return line

    def _check_size(self, size: int) -> None:
        if size > self.line_bytes:
            raise InvalidOutput(
                f"Line {self.count + 1}: it is longer than {self.line_bytes} bytes. "
                "Write one answer a line."
            )
