"""Call a target with three texts, to see what it answers and how fast."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from tasks.models import Context, TargetModel, Task
from tasks.targets.ask_before_opening import fill_inputs
from tasks.targets.endpoints.base import Prediction
from tasks.targets.send_test import NoAnswer, ask_target, note_test, reserve_slot
from tasks.targets.spending_services import Payer, SpentError, check_budget, note_uses

TEXT_COUNT = 3
AnsweredText = tuple[Mapping[str, Any], Prediction | NoAnswer]


def build_samples(task: Task) -> list[Mapping[str, Any]]:
    """Return at most three inputs for models, from good examples, then from contexts."""
    # Good examples come first: the task's owners chose them.
    examples = [{**example.context, **example.input} for example in task.config.examples.good]
    contexts = Context.objects.filter(round__task=task, is_retired=False).order_by("pk")
    candidates = examples
    candidates += [context.fields for context in contexts[:TEXT_COUNT]]
    candidates.append({})  # for a task without contexts
    inputs = (fill_inputs(task, example) for example in candidates)
    return list(islice((example for example in inputs if example is not None), TEXT_COUNT))


def ask_three_texts(target: TargetModel) -> list[AnsweredText]:
    """Call the target with all inputs of `build_samples` at once; return each with its result.

    Call it outside transactions: it may take TEST_SECONDS. Raises NoAnswer if a budget is used up.
    """
    texts, payer = build_samples(target.task), Payer(target)
    try:
        check_budget(payer)
    except SpentError as error:
        raise NoAnswer(error.reason, str(error)) from None

    def collect_result(inputs: Mapping[str, Any]) -> Prediction | NoAnswer:
        try:
            return ask_target(target, inputs)
        except NoAnswer as error:
            return error

    with reserve_slot(), ThreadPoolExecutor(TEXT_COUNT) as pool:
        results = list(pool.map(collect_result, texts))
    note_uses([payer] * len(results), [result.usage for result in results])
    answers = [result for result in results if isinstance(result, Prediction)]
    # One result is stored with the target: an answer, if there is any.
    for result in (answers or results)[:1]:
        note_test(target, result)
    return list(zip(texts, results, strict=True))
