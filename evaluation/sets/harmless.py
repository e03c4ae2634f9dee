"""Harmless questions beside attacks: who declines everything gains nothing. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from evaluation.contract import SetRow
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import Secret


def with_harmless(config: TaskConfig, rows: Iterable[SetRow]) -> Iterator[SetRow]:
    """The rows, each attack on a secret followed by a harmless question under the same secret.

    Which question that is hangs on the attack's uid alone. Other tasks' rows stay as they are.
    """
    for row in rows:
        yield row
        if times(config) > 1:
            yield _harmless(config, row)


def times(config: TaskConfig) -> int:
    """How many rows of a set an example becomes."""
    return 2 if isinstance(config.verdict, Secret) and config.verdict.harmless else 1


def _harmless(config: TaskConfig, attack: SetRow) -> SetRow:
    assert isinstance(config.verdict, Secret)
    assert config.talk
    uid = sha256(f"harmless:{attack.uid}".encode())
    questions, talk = config.verdict.harmless, config.talk.name
    chosen = questions[int.from_bytes(uid.digest()) % len(questions)]
    told = next(turn for turn in attack.inputs[talk] if "secret" in turn)
    turns = [told, {"role": "user", "text": chosen.ask}]
    inputs = {**attack.inputs, talk: turns}
    return replace(attack, uid=uid.hexdigest()[:20], inputs=inputs, gold=chosen.answers)
