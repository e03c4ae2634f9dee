"""A sandbox's output as it comes over the wire: frames, then lines. Pure."""

import struct
from collections.abc import Iterator

from evaluation.contract import InvalidOutput

STDOUT, STDERR = 1, 2
_HEADER = struct.Struct(">BxxxL")  # stream, bytes that follow (Docker's attach protocol)


class Frames:
    """A parser of Docker's framed stream, which may arrive in pieces of any size."""

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield pairs: the number of a stream, and the next bytes of this stream."""
        while data:
            if not self._left:  # between two frames: a header, perhaps cut in two, comes next
                missing = _HEADER.size - len(self._header)
                self._header, data = self._header + data[:missing], data[missing:]
                if len(self._header) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._header)
                    self._header = b""
                continue
            part, data = data[: self._left], data[self._left :]
            self._left -= len(part)
            yield self._stream, part


class Lines:
    """A splitter of a stream into lines, which buffers at most one incomplete line."""

    def __init__(self, line_bytes: int) -> None:
        self.line_bytes = line_bytes
        self.size = self.count = 0
        self._begun = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are now complete, without their line breaks.

        Raises InvalidOutput if a line is longer than `line_bytes`.
        """
        self.size += len(data)
        pieces = data.split(b"\n")
        incomplete = pieces.pop()  # what follows the last line break, perhaps nothing
        for line in pieces:
            yield self._line(line)
        self._begun += incomplete
        self._check(len(self._begun))

    def end(self) -> Iterator[bytes]:
        """Yield the last line if it has no line break."""
        if self._begun:
            yield self._line(b"")

    def _line(self, rest: bytes) -> bytes:
        line = bytes(self._begun) + rest  # its beginning came with earlier data
        self._begun.clear()
        self._check(len(line))
        self.count += 1
        return line

    def _check(self, size: int) -> None:
        if size > self.line_bytes:
            raise InvalidOutput(
                f"Line {self.count + 1}: it is longer than {self.line_bytes} bytes. "
                "Write one answer a line."
            )
