"""Call a round's targets before it opens, with the task's own example."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.utils.translation import gettext as _

from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Context, Round, TargetModel, Task
from tasks.targets.endpoints.base import Prediction
from tasks.targets.send_test import NoAnswer, ask_target, note_test, reserve_slot
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

PLAIN_TEXT = "This is an example."


def build_sample(task: Task, round: Round | None = None) -> dict[str, Any]:
    """Return the values of a good example, with a context of the round or the latest context."""
    rounds = [round] if round else task.rounds.all()
    # A context of the latest round: it is the most like what people will be given.
    contexts = Context.objects.filter(round__in=rounds, is_retired=False)
    context = contexts.order_by("-round__number", "pk").first()
    example = next(iter(task.config.examples.good), None)
    # An example that brings its own context is asked as the task's page shows it.
    if example and example.context:
        return {**example.context, **example.input}
    return {**(example.input if example else {}), **(context.fields if context else {})}


class SilentTargets(Exception):
    """Raised if targets gave no usable answer. The message names them with the reasons.

    is_loading: whether all of them are only busy, for example loading a model.
    """

    def __init__(self, message: str, *, is_loading: bool = False) -> None:
        super().__init__(message)
        self.is_loading = is_loading


def ask_targets(targets: Sequence[TargetModel], round: Round) -> dict[str, str]:
    """Call all targets at once with the task's example, and return their versions by target name.

    If there is no example, a plain text is sent. If plain text cannot fill all fields, the targets
    are not called, and the versions are "". Call it outside transactions: it may take TEST_SECONDS.
    Raises SilentTargets.
    """
    inputs = _build_inputs(round)
    if not targets or inputs is None:
        return {target.name: "" for target in targets}
    # 1. Check every budget first: a target that may not be asked ends the opening before calls
    # cost.
    payers = [Payer(target, round.pk) for target in targets]
    for target, payer in zip(targets, payers, strict=True):
        target.task = round.task  # the threads need no database
        try:
            check_budget(payer)
        except SpentError as error:
            raise SilentTargets(f"{target.name}: {error}") from None

    def collect_result(target: TargetModel) -> Prediction | NoAnswer:
        try:
            return ask_target(target, inputs)
        except NoAnswer as error:
            return error

    try:
        # 2. Ask all at once, so that the slowest one decides how long it takes.
        with reserve_slot(), ThreadPoolExecutor(len(targets)) as pool:
            results = list(zip(targets, pool.map(collect_result, targets), strict=True))
    except NoAnswer as error:
        raise SilentTargets(error.detail) from None
    # 3. Count what was spent, also on failures.
    note_uses(payers, [result.usage for _target, result in results])
    # 4. Store what came back, and refuse if any target failed.
    return _store_results(results)


def _store_results(results: Sequence[tuple[TargetModel, Prediction | NoAnswer]]) -> dict[str, str]:
    """Store each target's result; return the versions by name. Raises SilentTargets."""
    versions, failures, reasons = {}, [], set()
    for target, result in results:
        note_test(target, result)
        if isinstance(result, NoAnswer):
            failures.append(_describe_failure(target, result))
            reasons.add(result.reason)
        else:
            versions[target.name] = str(result.fingerprint.get("digest", ""))
    if failures:
        raise SilentTargets(" ".join(failures), is_loading=reasons == {"busy"})
    return versions


def _describe_failure(target: TargetModel, error: NoAnswer) -> str:
    values = {"target": target.name, "why": str(error), "detail": error.extra_detail}
    # Translators: target: a model; why, detail: whole sentences
    return _("%(target)s: %(why)s %(detail)s") % values


def _build_inputs(round: Round) -> Mapping[str, Any] | None:
    return fill_inputs(round.task, build_sample(round.task, round))


def fill_inputs(task: Task, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the values of an example that models read, with plain text for missing texts.

    Returns None if another field has no value.
    """
    config, values = task.config, dict(values)
    for name in config.model_fields:
        if name not in values and config.get_component(name).kind.is_text:
            values[name] = PLAIN_TEXT
        # A conversation of one turn is the shortest that a model can answer.
        elif name not in values and config.get_component(name) is config.talk:
            values[name] = [{"role": "user", "text": PLAIN_TEXT}]
    if any(name not in values for name in config.model_fields):
        return None
    # Pictures and recordings as data URLs, as while people write.
    values = prepare_for_models(config, task, values)
    return {name: values[name] for name in config.model_fields}
