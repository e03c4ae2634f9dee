"""Downloads of lines: complete, and in blocks, because each block costs a call of the system."""

from core.web.downloads import BLOCK_BYTES, respond_with_lines


def test_lines_come_whole_and_in_blocks():
    rows = [f"ä line {n}\n" if n % 2 else f"bytes {n}\n".encode() for n in range(20_000)]
    blocks = list(respond_with_lines(rows, "lines.jsonl"))
    whole = b"".join(row.encode() if isinstance(row, str) else row for row in rows)
    assert b"".join(blocks) == whole
    assert all(len(block) >= BLOCK_BYTES for block in blocks[:-1])
    assert len(blocks) == len(whole) // BLOCK_BYTES + 1
    assert list(respond_with_lines([], "none.jsonl")) == []


def test_a_source_is_opened_before_the_answer_and_read_as_it_is_sent():
    read = []

    def rows():
        for number in range(100):
            read.append(number)
            yield b"x" * BLOCK_BYTES

    response = respond_with_lines(rows(), "lines.jsonl")
    assert read == [0]
    next(iter(response))
    assert len(read) < 3
