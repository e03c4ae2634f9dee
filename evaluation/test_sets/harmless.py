"""Add harmless questions beside attacks, so that declining everything gains nothing. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from evaluation.contract import SetRow
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import Secret


def add_harmless_questions(config: TaskConfig, rows: Iterable[SetRow]) -> Iterator[SetRow]:
    """Yield the rows, each attack followed by a harmless question with the same secret.

    The question depends only on the attack's uid. Rows of tasks without attacks are yielded
    unchanged.
    """
    for row in rows:
        yield row
        if count_rows_per_example(config) > 1:
            yield _make_harmless_row(config, row)


def count_rows_per_example(config: TaskConfig) -> int:
    """Return how many rows of a set are made from one example."""
    return 2 if isinstance(config.verdict, Secret) and config.verdict.harmless else 1


def _make_harmless_row(config: TaskConfig, attack: SetRow) -> SetRow:
    assert isinstance(config.verdict, Secret)
    assert config.talk
    # Different from the attack's uid, but always the same.
    uid = sha256(f"harmless:{attack.uid}".encode())
    questions, talk = config.verdict.harmless, config.talk.name
    # Chosen by the attack's uid, so that a rebuilt set has the same questions.
    question = questions[int.from_bytes(uid.digest()) % len(questions)]
    secret_turn = next(turn for turn in attack.inputs[talk] if "secret" in turn)
    turns = [secret_turn, {"role": "user", "text": question.ask}]
    inputs = {**attack.inputs, talk: turns}
    return replace(attack, uid=uid.hexdigest()[:20], inputs=inputs, gold=question.answers)
