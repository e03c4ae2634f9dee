"""The proof that a call to our model server comes from its site."""

import pytest

from serving.proofs import LIFETIME_SECONDS, PROOF_HEADER, Prover, read_proven_task

KEY, NOW = b"k" * 32, 1_800_000_000.0
NAME, VALUE = Prover(KEY, 7).build_header(NOW)


@pytest.mark.parametrize("seconds", [0, LIFETIME_SECONDS, -LIFETIME_SECONDS])
def test_it_names_the_task_for_a_while(seconds: float) -> None:
    assert NAME == PROOF_HEADER
    assert read_proven_task([KEY], [(b"host", b"x"), (NAME, VALUE)], NOW + seconds) == 7
    assert read_proven_task([b"newer", KEY], [(NAME, VALUE)], NOW + seconds) == 7


@pytest.mark.parametrize("seconds", [LIFETIME_SECONDS + 1, -LIFETIME_SECONDS - 1])
def test_it_expires(seconds: float) -> None:
    assert read_proven_task([KEY], [(NAME, VALUE)], NOW + seconds) is None


def test_it_is_made_now() -> None:
    assert read_proven_task([KEY], [Prover(KEY, 7).build_header()]) == 7
    assert "kkk" not in repr(Prover(KEY, 7))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [VALUE, VALUE],
        [b""],
        [b"7"],
        [VALUE.replace(b"7.", b"8.", 1)],
        [VALUE + b".1"],
        [VALUE[:-1]],
        [b"-7" + VALUE[1:]],
        [b"7.x." + VALUE.split(b".")[2]],
        [b"9" * 30 + VALUE[1:]],
        ["٧".encode() + VALUE[1:]],
        [VALUE.rsplit(b".", 1)[0] + b"." + "é".encode()],
    ],
)
def test_anything_else_proves_nothing(values: list[bytes]) -> None:
    assert read_proven_task([KEY], [(NAME, value) for value in values], NOW) is None


def test_another_key_proves_nothing() -> None:
    assert read_proven_task([b"other"], [(NAME, VALUE)], NOW) is None
    assert read_proven_task([], [(NAME, VALUE)], NOW) is None
