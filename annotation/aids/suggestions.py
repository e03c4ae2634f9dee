"""Suggestions: a text from the task's generator, which people use, edit or ignore."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation import selectors
from annotation.aids.registry import Aid
from annotation.attempts.live_targets import build_live_target, submit_to_pool, wait_for_answers
from annotation.context_picking.services import save_draft
from annotation.models import Assignment, Suggestion
from annotation.open_round import describe_closed_round
from annotation.refusals import CapReached, RoundClosed
from annotation.rules.prompt import split_goal
from core.accounts.counting import build_quota_name, count_spent_today
from core.accounts.models import Annotator
from core.days import get_midnight
from tasks.arms import HELPED
from tasks.config.schema import TaskConfig
from tasks.config.values import find_value_errors
from tasks.models import Generator
from tasks.targets.circuit_breaker.breaker import TargetNotAsked
from tasks.targets.connect import get_generator_endpoint, list_generator_fields
from tasks.targets.contact_services import note_lasting_contact
from tasks.targets.endpoints.base import EndpointError, Prediction, build_rubbish_error
from tasks.targets.endpoints.live import TargetFailed
from tasks.targets.first_contact import build_failed_contact

AID_NAME = "suggestions"
MAX_PER_PASSAGE = 3
"""The maximum number of suggestions for one context. The daily limit is that of tries."""
# A text takes longer to write than an answer, for which pages wait five seconds.
SUGGEST_SECONDS = 10.0
Action = Suggestion.Action


def create_suggestion(assignment: Assignment) -> Suggestion:
    """Ask the task's generator for a text and store it.

    Takes no lock; no transaction is open while the generator is asked. Raises RoundClosed,
    CapReached, EndpointError.
    """
    _check_may_ask(assignment)
    task, context = assignment.round.task, assignment.context.fields
    generator = Generator.objects.filter(task=task).select_related("task").first()
    if generator is None:
        raise EndpointError("The task has no generator.", reason="misconfigured")
    inputs = {name: context.get(name, "") for name in list_generator_fields(task.config)}
    inputs["goal"] = "".join(split_goal(task.config, assignment.goal))
    prediction = request_generated_text(generator, inputs)
    return Suggestion.objects.create(
        assignment=assignment,
        text=_read_text(assignment, prediction.output),
        source=generator.name,
        fingerprint=dict(prediction.fingerprint),
    )


def request_generated_text(generator: Generator, inputs: Mapping[str, Any]) -> Prediction:
    """Return the generator's prediction, within SUGGEST_SECONDS. Raises EndpointError.

    Stores a failure that the owners can fix. Do not call it in a transaction, because the
    failure must not be rolled back.
    """
    try:
        return _ask_generator(generator, inputs)
    except EndpointError as error:
        cause = error.error if isinstance(error, TargetFailed) else error
        # Its breaker was open: it was not asked, so nothing new is known of it.
        if not isinstance(cause, TargetNotAsked):
            note_lasting_contact(generator, build_failed_contact(generator, cause))
        raise


def _ask_generator(generator: Generator, inputs: Mapping[str, Any]) -> Prediction:
    endpoint = get_generator_endpoint(generator)
    target = build_live_target(generator.name, endpoint, f"generator:{generator.pk}")
    pending_answers = submit_to_pool([target], inputs, SUGGEST_SECONDS)
    if not wait_for_answers(pending_answers, SUGGEST_SECONDS):
        raise EndpointError("The generator took too long.", reason="slow")
    return pending_answers.result()[0]


def _check_may_ask(assignment: Assignment) -> None:
    round = assignment.round
    if not selectors.may_submit_example(assignment):
        raise RoundClosed(describe_closed_round(round))
    if assignment.suggestions.count() >= MAX_PER_PASSAGE:
        message = ngettext(
            "You've used your %(number)d suggestion for this text.",
            "You've used your %(number)d suggestions for this text.",
            MAX_PER_PASSAGE,
        )
        raise CapReached(message % {"number": MAX_PER_PASSAGE})
    quota = build_quota_name(AID_NAME, round.task_id)
    use_count = count_suggestions_today(assignment.annotator).get(quota, 0)
    # What the person used today under deleted accounts counts too.
    use_count += count_spent_today(assignment.annotator.user_id, quota)
    if use_count >= round.task.config.limits.tries_per_day:
        raise CapReached(_("You've used today's suggestions. The limit resets at 00:00 UTC."))


def count_suggestions_today(annotator: Annotator) -> dict[str, int]:
    """Return the number of suggestions since 00:00 UTC, by the name of the task's quota."""
    suggestions_today = Suggestion.objects.filter(
        assignment__annotator=annotator, asked_at__gte=get_midnight()
    )
    counts = (
        suggestions_today.order_by().values_list("assignment__round__task").annotate(Count("pk"))
    )
    return {build_quota_name(AID_NAME, task): number for task, number in counts}


def _read_text(assignment: Assignment, output: Mapping[str, Any]) -> str:
    """Return the generator's text, after checking that the form would accept it.

    Raises EndpointError.
    """
    config = assignment.round.task.config
    text = output[config.text_field]
    if not isinstance(text, str) or not text.strip():
        raise build_rubbish_error("The generator wrote no text.")
    problems = find_value_errors(config.get_component(config.text_field), text.strip(), {})
    if problems:
        raise build_rubbish_error(f"The generator's text does not fit: {problems[0]}.")
    return text.strip()


def record_choice(
    *, assignment: Assignment, action: Action, typed_texts: Mapping[str, Any]
) -> None:
    """Record whether the person uses, edits or ignores the latest suggestion.

    Unless ignored, the suggestion replaces the draft's text. Does nothing if there is no
    suggestion. Takes no lock.
    """
    last_suggestion = assignment.suggestions.last()
    if last_suggestion is None:
        return
    last_suggestion.action = action
    last_suggestion.save(update_fields=["action"])
    if action != Action.IGNORE:
        field = assignment.round.task.config.text_field
        save_draft(assignment=assignment, inputs={**typed_texts, field: last_suggestion.text})


class Suggestions(Aid, name="suggestion"):
    """A writing aid that offers a text from the task's generator."""

    label = gettext_lazy("Suggest a text")
    waiting = gettext_lazy("Asking for a suggestion…")
    place = 2
    template = "annotation/ideas/_suggestion_or_none.html"
    answers = tuple(Action.values)

    def is_allowed(self, config: TaskConfig) -> bool:
        """Return whether the task lets people ask the generator."""
        return bool(config.support and config.support.suggestions)

    def is_offered_in_arm(self, config: TaskConfig, arm: str) -> bool:
        """Return whether the text is in the arm of people with help, whatever the task allows."""
        return arm == HELPED

    def provide_help(
        self, assignment: Assignment, button_value: str, typed_values: Mapping[str, Any]
    ) -> None:
        """Ask for a text, or record what the person does with the last one."""
        if button_value == self.name:
            create_suggestion(assignment)
        else:
            record_choice(
                assignment=assignment, action=Action(button_value), typed_texts=typed_values
            )
