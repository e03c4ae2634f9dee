"""Continuous batching, by a decoder whose every next token is known."""

import queue
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE

from serving.errors import BusyError, DeadlineError, StoppedError
from serving.generation.batch import CHUNK_TOKENS, Batch
from serving.generation.conversation import Conversation, Piece, create_conversation
from serving.generation.sampling import Sampling

LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = len(LETTERS)


class Letters:
    """After a letter comes the next one, after z the end. It remembers what each row holds."""

    def __init__(self, rows: int = 3) -> None:
        self.rows = rows
        self.memory: list[list[int]] = [[] for _ in range(rows)]
        self.read_count = 0
        self.steps: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def _next(self, token: int) -> np.ndarray:
        logits = np.zeros(END + 1, np.float32)
        logits[min(token + 1, END)] = 9
        return logits

    def read_tokens(self, row: int, ids: list[int], start: int) -> np.ndarray:
        self.memory[row] = [*self.memory[row][:start], *ids]
        self.read_count += len(ids)
        return np.array([self._next(token) for token in ids])

    def append_tokens(self, ids: list[int], lengths: list[int]) -> np.ndarray:
        assert self.go_on.wait(10)
        self.steps.append(len(ids))
        for row, (token, length) in enumerate(zip(ids, lengths, strict=True)):
            assert len(self.memory[row][:length]) == length  # nothing of it was lost on the way
            self.memory[row] = [*self.memory[row][:length], token]
        # What comes next follows from the row's own memory, so that a mixed-up row is seen.
        return np.array([self._next(self.memory[row][-1]) for row in range(len(ids))])

    def copy_to_row(self, source: int, target: int, length: int) -> None:
        self.memory[target] = self.memory[source][:length]

    def copy_row(self, row: int, length: int) -> list[np.ndarray]:
        return [np.array(self.memory[row][:length])]

    def restore_row(self, row: int, kept: list[np.ndarray], length: int) -> None:
        self.memory[row] = [int(token) for token in kept[0][:length]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    made = Tokenizer(BPE({letter: n for n, letter in enumerate(LETTERS)}, []))
    made.decoder = ByteLevel()
    return made


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture
def batch(letters: Letters) -> Iterator[Batch]:
    made = Batch(letters, max_queued=3, name="letters")
    yield made
    letters.go_on.set()
    made.close()


class Asked:
    """A conversation and what was told of it."""

    def __init__(
        self, tokenizer: Tokenizer, prompt: str, seconds: float = 60, **how: object
    ) -> None:
        self.told: queue.Queue[Piece | Exception] = queue.Queue()
        sampling = Sampling(**{"max_tokens": 100, **how})  # type: ignore[arg-type]
        self.one: Conversation = create_conversation(
            [LETTERS.index(letter) for letter in prompt], sampling, tokenizer, frozenset([END]),
            on_piece=self.told.put, deadline=time.monotonic() + seconds,
        )  # fmt: skip

    def answer(self) -> tuple[str, str]:
        """The whole text and why it ended."""
        text = ""
        while True:
            piece = self.told.get(timeout=10)
            if isinstance(piece, Exception):
                raise piece
            text += piece.text
            if piece.reason:
                return text, piece.reason


def test_an_answer_ends_by_itself_or_at_its_limit(batch: Batch, tokenizer: Tokenizer) -> None:
    whole, cut = Asked(tokenizer, "v"), Asked(tokenizer, "a", max_tokens=3)
    for asked in (whole, cut):
        batch.submit(asked.one)
    assert whole.answer() == ("wxyz", "stop")
    assert cut.answer() == ("bcd", "length")
    # The end is a token too.
    assert (whole.one.answer_token_count, cut.one.answer_token_count) == (5, 3)


def test_a_choice_may_end_where_another_goes_on(batch: Batch, tokenizer: Tokenizer) -> None:
    shorter, longer = (
        Asked(tokenizer, "y", choices=("z", "za")),
        Asked(tokenizer, "a", choices=("b", "bc")),
    )
    for asked in (shorter, longer):
        batch.submit(asked.one)
    assert shorter.answer() == ("z", "stop")  # after z the end is likeliest
    assert longer.answer() == ("bc", "stop")


def test_an_end_that_is_ignored_ends_nothing(batch: Batch, tokenizer: Tokenizer) -> None:
    asked = Asked(tokenizer, "y", is_end_ignored=True, max_tokens=4)
    batch.submit(asked.one)
    assert asked.answer()[1] == "length"
    assert asked.one.answer_token_count == 4


def test_each_token_is_told_with_one_piece(batch: Batch, tokenizer: Tokenizer) -> None:
    """Also the one that ends the answer, and those whose text was held back for a stop text."""
    asked = Asked(tokenizer, "t", logprobs=1, stop=("wxz",))
    batch.submit(asked.one)
    pieces = [asked.told.get(timeout=10)]
    while not pieces[-1].reason:  # type: ignore[union-attr]
        pieces.append(asked.told.get(timeout=10))
    told = [one for piece in pieces for one in piece.reported]  # type: ignore[union-attr]
    assert told == asked.one.reported
    assert [one.token for one in told] == [*map(LETTERS.index, "uvwxyz"), END]
    counts = [piece.answer_token_count for piece in pieces]  # type: ignore[union-attr]
    assert counts == sorted(counts)
    assert counts[-1] == 7


def test_a_choice_is_one_of_its_texts_whatever_is_likelier(
    batch: Batch, tokenizer: Tokenizer
) -> None:
    likelier = Asked(tokenizer, "a", choices=("xyz", "bz", "by"))  # after a comes b; y is no worse
    sure = Asked(tokenizer, "a", choices=("ba", "bc", "dd"), temperature=0.1, seed=1)
    cut = Asked(tokenizer, "a", choices=("cabc",), max_tokens=2)
    for asked in (likelier, sure, cut):
        batch.submit(asked.one)
    assert likelier.answer()[0] in ("bz", "by")
    assert sure.answer() == ("bc", "stop")
    assert cut.answer() == ("ca", "length")


def test_who_comes_later_joins_and_who_is_done_leaves(
    batch: Batch, letters: Letters, tokenizer: Tokenizer
) -> None:
    letters.go_on.clear()
    asked = [Asked(tokenizer, prompt) for prompt in ("a", "w", "m")]
    for one in asked:
        batch.submit(one.one)
    letters.go_on.set()
    assert [one.answer()[0] for one in asked] == [
        LETTERS[LETTERS.index(p) + 1 :] for p in ("a", "w", "m")
    ]
    assert max(letters.steps) == 3  # all at once
    assert letters.steps[-1] == 1  # the longest goes on alone
    assert len(letters.steps) < 26 + 4 + 14  # far fewer steps than one by one


def test_a_long_prompt_is_read_in_pieces_between_the_words_of_others(
    batch: Batch, letters: Letters, tokenizer: Tokenizer
) -> None:
    letters.go_on.clear()
    writing, long = Asked(tokenizer, "a"), Asked(tokenizer, "b" * (3 * CHUNK_TOKENS))
    batch.submit(writing.one)
    batch.submit(long.one)
    letters.go_on.set()
    assert long.answer()[0] == LETTERS[2:]
    assert writing.answer()[0] == LETTERS[1:]
    assert letters.steps[:4] == [1, 1, 1, 2]  # the other wrote a word after each piece


def test_stop_texts_end_an_answer_and_are_not_shown(batch: Batch, tokenizer: Tokenizer) -> None:
    asked = Asked(tokenizer, "a", stop=("efg", "zz"))
    batch.submit(asked.one)
    assert asked.answer() == ("bcd", "stop")


def test_what_was_said_before_is_not_read_again(
    batch: Batch, letters: Letters, tokenizer: Tokenizer
) -> None:
    first = Asked(tokenizer, "abcabc", max_tokens=4)
    batch.submit(first.one)
    assert first.answer() == ("defg", "length")
    before = letters.read_count
    second = Asked(tokenizer, "abcabcdefgxy", max_tokens=1)
    batch.submit(second.one)
    assert second.answer() == ("z", "length")
    assert second.one.cached_token_count == 9  # the last word's token was never computed
    assert letters.read_count - before == 12 - 9


def test_who_goes_away_is_no_longer_written(
    batch: Batch, letters: Letters, tokenizer: Tokenizer
) -> None:
    letters.go_on.clear()
    gone, stays = Asked(tokenizer, "a"), Asked(tokenizer, "n")
    for asked in (gone, stays):
        batch.submit(asked.one)
    gone.one.cancel()
    letters.go_on.set()
    assert stays.answer()[0] == LETTERS[14:]
    assert gone.one.answer_token_count < 25


def test_a_deadline_ends_what_waits_and_what_is_written(
    batch: Batch, letters: Letters, tokenizer: Tokenizer
) -> None:
    letters.go_on.clear()
    late = Asked(tokenizer, "a")
    batch.submit(late.one)
    while not late.one.answer_token_count:
        time.sleep(0.001)
    late.one.deadline = time.monotonic()
    letters.go_on.set()
    with pytest.raises(DeadlineError):
        late.answer()


def test_a_full_line_refuses(batch: Batch, letters: Letters, tokenizer: Tokenizer) -> None:
    letters.go_on.clear()
    first = Asked(tokenizer, "a")
    batch.submit(first.one)
    while not first.one.answer_token_count:
        time.sleep(0.001)
    for _ in range(3):
        batch.submit(Asked(tokenizer, "a").one)
    with pytest.raises(BusyError):
        batch.submit(Asked(tokenizer, "a").one)


def test_closing_tells_who_waits_and_who_is_written(letters: Letters, tokenizer: Tokenizer) -> None:
    batch = Batch(letters, max_queued=2, name="letters")
    letters.go_on.clear()
    asked = [Asked(tokenizer, "a"), Asked(tokenizer, "b")]
    for one in asked:
        batch.submit(one.one)
    closing = threading.Thread(target=batch.close)
    closing.start()
    while not batch._is_closed:
        time.sleep(0.001)
    letters.go_on.set()
    closing.join()
    for one in asked:
        with pytest.raises(StoppedError):
            one.answer()
    with pytest.raises(StoppedError):
        batch.submit(Asked(tokenizer, "a").one)


def test_a_failing_decoder_fails_who_is_written_and_serves_the_next(
    batch: Batch, letters: Letters, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(ids: list[int], lengths: list[int]) -> np.ndarray:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(letters, "append_tokens", broken)
        asked = Asked(tokenizer, "a")
        batch.submit(asked.one)
        with pytest.raises(RuntimeError, match="no memory"):
            asked.answer()
    after = Asked(tokenizer, "w")
    batch.submit(after.one)
    assert after.answer() == ("xyz", "stop")
