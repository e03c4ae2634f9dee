"""The lines in which an evaluation set is stored. Their digest is the set's."""

from collections.abc import Iterable, Iterator

import orjson

from evaluation.contract import SetRow


def build_stored_lines(row: SetRow) -> tuple[bytes, bytes]:
    """Return an example's line in the file of inputs, and its line in the file of answers."""
    public = {"uid": row.uid, "inputs": row.inputs}
    secret = {"uid": row.uid, "gold": row.gold, "slices": row.slices}
    # Only where there are some, so that the digests of all other sets stay as they were.
    if row.criteria:
        secret["criteria"] = row.criteria
    return orjson.dumps(public) + b"\n", orjson.dumps(secret) + b"\n"


def iterate_digested_lines(rows: Iterable[SetRow]) -> Iterator[bytes]:
    """Yield the lines of both files in turns, so that one digest pins both."""
    for row in rows:
        yield from build_stored_lines(row)
