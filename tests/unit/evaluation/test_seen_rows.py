"""Counting a set's examples among packed training rows; when readers are told. Pure."""

import pytest

from evaluation.test_sets.overlap import (
    DIGEST_BYTES,
    compute_digest,
    count_packed_rows,
    needs_warning,
    pack_digests,
)

FIELDS = ("premise", "hypothesis")


def row(number):
    return {"premise": f"Ada has {number} cats.", "hypothesis": "So."}


def test_rows_are_found_however_they_are_written():
    packed = pack_digests(compute_digest(row(number), FIELDS) for number in (1, 2, 2, 3))
    assert len(packed) == 3 * DIGEST_BYTES
    shouted = {"premise": "ADA  has 2 cats", "hypothesis": "so"}
    assert count_packed_rows([row(1), shouted, row(4), row(1)], packed, FIELDS) == 3
    assert count_packed_rows([row(1)], b"", FIELDS) == 0


@pytest.mark.parametrize(
    ("seen", "size", "is_told"),
    [(None, 100, False), (0, 100, False), (1, 20, False), (2, 20, True), (9, 1000, False),
     (10, 1000, True)],
)  # fmt: skip
def test_one_example_never_suffices(seen, size, is_told):
    assert needs_warning(seen, size) is is_told
