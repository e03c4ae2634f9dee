"""Asking a round's targets before it opens, for the task's own example."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.utils.translation import gettext as _

from tasks.contexts.media.selectors import for_models
from tasks.models import Context, Round, TargetModel, Task
from tasks.targets.endpoints.base import Prediction
from tasks.targets.send_test import NoAnswer, answer_to, asking, note_test
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

PLAIN_TEXT = "This is an example."


def sample_of(task: Task, round: Round | None = None) -> dict[str, Any]:
    """Return a good example of the configuration over a context of the round, or the latest one."""
    rounds = [round] if round else task.rounds.all()
    contexts = Context.objects.filter(round__in=rounds, is_retired=False)
    context = contexts.order_by("-round__number", "pk").first()
    example = next(iter(task.config.examples.good), None)
    if example and example.context:
        return {**example.context, **example.input}
    return {**(example.input if example else {}), **(context.fields if context else {})}


class Silent(Exception):
    """Targets gave no usable answer; the message says which and why.

    is_loading: all of them are only busy, as while a model is being loaded.
    """

    def __init__(self, message: str, *, is_loading: bool = False) -> None:
        super().__init__(message)
        self.is_loading = is_loading


def ask_targets(targets: Sequence[TargetModel], round: Round) -> dict[str, str]:
    """Ask all targets at once for the task's example; return by name the version that answered.

    A task that shows no example is asked with a plain text; one that would need more than a text
    cannot be asked, and then no version is known. Call it outside transactions: it may take
    TEST_SECONDS. Raises Silent.
    """
    inputs = _inputs(round)
    if not targets or inputs is None:
        return {target.name: "" for target in targets}
    payers = [Payer(target, round.pk) for target in targets]
    for target, payer in zip(targets, payers, strict=True):
        target.task = round.task  # the threads need no database
        try:
            check_budget(payer)
        except SpentError as error:
            raise Silent(f"{target.name}: {error}") from None

    def answer(target: TargetModel) -> Prediction | NoAnswer:
        try:
            return answer_to(target, inputs)
        except NoAnswer as error:
            return error

    try:
        with asking(), ThreadPoolExecutor(len(targets)) as pool:
            results = list(zip(targets, pool.map(answer, targets), strict=True))
    except NoAnswer as error:
        raise Silent(error.detail) from None
    note_uses(payers, [one.usage for _, one in results])
    for target, result in results:
        note_test(target, result)
    silent = [(target, one) for target, one in results if isinstance(one, NoAnswer)]
    if silent:
        words = " ".join(_words(target, one) for target, one in silent)
        raise Silent(words, is_loading=all(one.reason == "busy" for _target, one in silent))
    return {t.name: str(one.fingerprint.get("digest", "")) for t, one in results}  # type: ignore[union-attr]


def _words(target: TargetModel, error: NoAnswer) -> str:
    values = {"target": target.name, "why": str(error), "detail": error.more}
    return _("%(target)s: %(why)s %(detail)s") % values


def _inputs(round: Round) -> Mapping[str, Any] | None:
    return filled(round.task, sample_of(round.task, round))


def filled(task: Task, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what models read of an example; None where a field that is no text has no value."""
    config, values = task.config, dict(values)
    for name in config.model_fields:
        if name not in values and config.component(name).kind.is_text:
            values[name] = PLAIN_TEXT
        elif name not in values and config.component(name) is config.talk:
            values[name] = [{"role": "user", "text": PLAIN_TEXT}]
    if any(name not in values for name in config.model_fields):
        return None
    values = for_models(config, task, values)
    return {name: values[name] for name in config.model_fields}
