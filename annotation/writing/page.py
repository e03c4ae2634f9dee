"""Build and render the write page: the whole page, its parts and its states."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotation import selectors
from annotation.aids.drafts import get_drafted_inputs
from annotation.aids.example_gallery import list_gallery_examples
from annotation.aids.registry import find_aid, list_allowed_aids
from annotation.attempts.conversation_services import get_conversation
from annotation.attempts.failures import (
    BROKEN_REASONS,
    FAILURE_MESSAGES,
    NO_ANSWER_MESSAGE,
    STATUS_BY_FAILURE,
)
from annotation.care.services import get_care
from annotation.context_picking import assignments
from annotation.models import Assignment, Attempt, Conversation, Example, Suggestion
from annotation.questions import build_empty_votes, count_votes
from annotation.refusals import StaleForm
from annotation.rules.near_duplicates import get_written_text
from annotation.rules.prompt import list_fields_to_read, split_goal
from annotation.rules.typing_evidence import contains_contact_details
from annotation.rules.writing_conditions import choose_marker
from annotation.writing import catch_beat, result_panel, talk
from annotation.writing.criteria_forms import CriteriaForm
from annotation.writing.forms import ExampleForm, build_why_form, render_blank_fields
from core.errors import Refused
from core.text.markdown import render_sections
from core.web.htmx import render_page
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import list_criteria
from tasks.contexts.media.markup import render_media
from tasks.models import Context, Round, Task
from tasks.selectors import list_targets

TEMPLATE = "annotation/write.html"
MAX_FILLERS = 3
HOME = "home"
"""The value of `WritePage.opened_aid` on the home page."""
JUDGED_EXAMPLE_STATES = ("decided", "no_consensus")
"""States of votes in which people's decision replaces the first verdict."""


class Filler(NamedTuple):
    """A link that fills the form of a try-out with a good example of the task.

    label: the example's tactic, else its goal, else its number.
    """

    url: str
    label: str


def list_fillers(config: TaskConfig, practice_url: str) -> list[Filler]:
    """Return a link for each of the task's first good examples that has a text."""
    fillers = []
    for number, example in enumerate(config.examples.good[:MAX_FILLERS]):
        if not example.input.get(config.text_field):
            continue
        field, label = config.goal.field, str(number + 1)
        if example.tactic:
            label = example.tactic
        elif field and example.input.get(field):
            label = config.display(field, example.input[field])
        fillers.append(Filler(f"{practice_url}?{urlencode({'example': number})}", label))
    return fillers


@dataclass
class WritePage:
    """The data of the write page for one context and goal, with or without an account."""

    task: Task
    round: Round
    context: Context
    goal: str
    assignment: Assignment | None = None  # None: a try-out
    parent: Example | None = None  # of others, to change as little as possible
    start_values: Mapping[str, Any] = field(default_factory=dict)
    retry_of: Example | None = None
    opened_aid: str = ""  # the writing aid that is shown
    practice_url: str = ""  # of a try-out
    opponent: str = ""  # the one model of a try-out; empty: those of the round
    is_past: bool = False  # an attempt that was made: its form shows what was written then
    practice_conversation: Conversation | None = None  # what was said in a try-out

    @classmethod
    def from_assignment(
        cls, assignment: Assignment, retry_of: Example | None = None, opened_aid: str = ""
    ) -> "WritePage":
        """Build the page of an assignment.

        The text is the draft, or else the text of `retry_of`, what the generator has drafted, or
        the text of the example to change. opened_aid: the `want` value of the aid that is shown.
        """
        parent = selectors.get_open_parent(assignment)
        start_values = (
            assignment.draft
            or (retry_of.inputs if retry_of else {})
            or get_drafted_inputs(assignment)
            or (parent.inputs if parent else {})
        )
        return cls(
            task=assignment.round.task,
            round=assignment.round,
            context=assignment.context,
            goal=assignment.goal,
            assignment=assignment,
            parent=parent,
            start_values=start_values,
            retry_of=retry_of,
            opened_aid=opened_aid,
        )

    def copy_for_attempt(self, attempt: Attempt) -> "WritePage":
        """Return a copy of the page with an attempt's text and goal."""
        goal = attempt.example.goal if attempt.example else self.goal
        return replace(self, start_values=attempt.inputs, goal=goal, is_past=True)

    @property
    def text_to_change(self) -> str:
        """Return the text that the writer must change: the parent's text, or else the prompt."""
        return self._parent_text or self._prompt

    @property
    def start_prompt(self) -> str:
        """Return the prompt to start from; empty without one, or if a parent's text is given."""
        return "" if self._parent_text else self._prompt

    @property
    def _prompt(self) -> str:
        support = self.task.config.support
        name = support.prompt_field if support else None
        return str(self.context.fields.get(name, "")) if name else ""

    @property
    def _parent_text(self) -> str:
        return str(self.parent.inputs.get(self.text_field, "")) if self.parent else ""

    @property
    def fillers(self) -> list[Filler]:
        """Return links that fill the form of a try-out with the task's good examples.

        Empty on other pages, in sensitive tasks, and if the input is a chat or a file.
        """
        config = self.task.config
        is_plain = not config.talk and not config.get_component(self.text_field).is_media
        # Texts that may hurt stay where the task page shields them.
        if not self.practice_url or not is_plain or self.task.is_sensitive:
            return []
        return list_fillers(config, reverse("home") if self.is_on_home else self.practice_url)

    @property
    def is_on_home(self) -> bool:
        """Return whether the form is the try-out of the home page, whose field begins empty."""
        return self.opened_aid == HOME

    @property
    def text_field(self) -> str:
        """Return the name of the main input field."""
        return self.task.config.text_field

    @property
    def is_decision(self) -> bool:
        """Return whether the person decides about a case, with or without a model's help."""
        return self.task.config.verdict.type == "decide"

    @property
    def challenge(self) -> str | None:
        """Return the text of the offered challenge, or None."""
        offered = self.assignment.challenge if self.assignment else None
        return self.task.config.challenges.get(offered) if offered else None

    @property
    def arm(self) -> str:
        """Return the arm of the text in a mixed round; empty outside of one."""
        return self.assignment.arm if self.assignment else ""

    @cached_property
    def conversation(self) -> Conversation | None:
        """Return the conversation so far, or None.

        For an assignment in a chat task, creates the conversation if it is missing. The page of an
        attempt that was made never creates one.
        """
        if self.assignment is None or self.task.config.talk is None:
            return self.practice_conversation
        if self.is_past:  # it may have become an example, which begins no other one
            return Conversation.objects.filter(assignment=self.assignment).first()
        return get_conversation(self.assignment)

    @property
    def _offers_edit(self) -> bool:
        """Return whether the person may ask for an earlier example to change."""
        support = self.task.config.support
        # In a mixed round an edited text would be in no arm.
        is_allowed = bool(support and support.minimal_edit) and not self.arm
        return is_allowed and selectors.select_released_before(self.round).exists()

    def build_form(
        self, data: Mapping[str, Any] | None = None, refusals: Mapping[str, str] | None = None
    ) -> ExampleForm:
        """Return the form, bound if there is data. refusals: messages about rejected uploads."""
        start_values = dict(self.start_values)
        if not start_values and not self.is_on_home:
            start_values = {self.text_field: self.text_to_change} if self.text_to_change else {}
        parent: UUID | None = self.retry_of.uuid if self.retry_of else None
        form = ExampleForm(
            data,
            config=self.task.config,
            context=self.context.fields,
            assignment_id=self.assignment.pk if self.assignment else self.context.pk,
            goal=self.goal,
            start_values=start_values,
            # In practice the model's answer to the given text is the first lesson.
            text_to_change=self.text_to_change if self.assignment else "",
            parent=parent,
            challenge=self.challenge,
            takes_challenge=bool(self.retry_of and self.retry_of.challenge),
            task=self.task,
            refusals=refusals,
            turns=self.conversation.turns if self.conversation else (),
        )
        # In a decision the conversation has no field.
        if self.is_decision or self.task.config.get_component(self.text_field).is_media:
            return form
        if self.is_on_home and self.start_prompt:
            # It tells writers to change a sentence that the home page does not show.
            form.fields[self.text_field].help_text = ""
        attrs = form.fields[self.text_field].widget.attrs
        attrs.setdefault("placeholder", " ")  # for :placeholder-shown
        attrs["data-given"] = start_values.get(self.text_field, "")
        is_first = self.opened_aid in ("", Suggestion.Action.EDIT) and not self.task.config.talk
        if data is None and not self.is_past and is_first:
            # Who chose to edit a text goes to it; else site.js leaves a phone at the top.
            is_chosen = self.opened_aid == Suggestion.Action.EDIT
            attrs["autofocus" if is_chosen else "data-focus"] = True
        if self.start_prompt and not self.start_values:
            attrs["data-select"] = True  # so that typing replaces it
        if self.assignment:  # drafts save themselves, apart from the form's own requests
            attrs["hx-post"] = reverse("annotation:draft", args=[self.assignment.pk])
            when = "input delay:1500ms, draft delay:1500ms"  # draft: of another field, by site.js
            attrs.update({"hx-trigger": when, "hx-target": "#draft-line"})
            attrs["hx-sync"] = "this:queue last"  # the newest is the last to be stored
        return form

    def _get_text_of(self, example: Example) -> str:
        field = self.text_field
        return self.task.config.display(field, example.inputs.get(field))

    def describe_targets(self) -> str:
        """Return the displayed names of the round's targets, or of the model of a try-out."""
        if self.opponent:
            return self.opponent
        # Fills the cache from which `target_names` reads.
        list_targets(self.round)
        return ", ".join(self.round.target_names) or _("no model in this round")

    @property
    def _care(self) -> Any:
        """Return a lazy care record, so that pages that do not show it make no query.

        None without an account.
        """
        assignment = self.assignment
        return (
            SimpleLazyObject(lambda: get_care(assignment.annotator, self.task))
            if assignment
            else None
        )

    def build_context(self, form: ExampleForm | None = None) -> dict[str, Any]:
        """Return the template's context, except the result panel."""
        text_before, words, text_after = split_goal(self.task.config, self.goal)
        values: dict[str, Any] = {
            "work": self,
            "is_decision": self.is_decision,
            "task": self.task,
            "round": self.round,
            "context": self.context,
            "care": self._care,
            "shown_context": SimpleLazyObject(
                lambda: result_panel.list_shown_fields(self.task.config, self.context)
            ),
            "has_read": bool(
                self.text_to_change or list_fields_to_read(self.task.config, self.context.fields)
            ),
            "form": form or SimpleLazyObject(self.build_form),
            "goal_before": text_before,
            "goal_words": words,
            "goal_after": text_after,
            "goal_label": self._goal_label,
            "practice": self.assignment is None,
            "is_newcomer": self.assignment is None,
            "targets": SimpleLazyObject(self.describe_targets),
            "limits": self.task.config.limits,
            "instructions": SimpleLazyObject(
                lambda: render_sections(self.task.config.instructions)
            ),
            "form_url": self.practice_url or reverse("annotation:write", args=[self.task.code]),
            "talk_url": self.practice_url or reverse("annotation:talk", args=[self.task.code]),
            "new_key": uuid4(),
            "aids": list_allowed_aids(self.task.config, self.arm),
            "opened_aid": find_aid(self.task.config, self.opened_aid, self.arm),
            "talk": SimpleLazyObject(
                lambda: talk.build_talk_values(self.conversation, self.task.config)
            ),
        }
        return {**values, **(self._build_own_values(self.assignment) if self.assignment else {})}

    @property
    def _goal_label(self) -> str:
        field = self.task.config.goal.field
        return self.task.config.display(field, self.goal) if field and self.goal else ""

    def _build_own_values(self, assignment: Assignment) -> dict[str, Any]:
        """Return the context values for people with an account.

        The values are lazy, because a partial page needs only a few of them.
        """
        cap = self.task.config.limits.tries_per_context
        usage: Any = SimpleLazyObject(lambda: selectors.count_usage(assignment))
        recent: Any = SimpleLazyObject(
            lambda: selectors.list_recent_examples(assignment.annotator, assignment.round)
        )
        return {
            "condition": assignment.writing_condition,
            "condition_marker": choose_marker(assignment.pk),
            "try_number": SimpleLazyObject(lambda: min(usage.context_count + 1, cap)),
            "tries_used": SimpleLazyObject(lambda: min(usage.context_count, cap)),
            "left_in_round": SimpleLazyObject(
                lambda: describe_examples_left(self.round, usage.round_count)
            ),
            "sent_back_reason": SimpleLazyObject(
                lambda: selectors.get_sent_back_reason(assignment)
            ),
            "assignment_words": SimpleLazyObject(lambda: assignments.describe_progress(assignment)),
            "recent": recent,
            "history": SimpleLazyObject(
                lambda: [
                    (example, self._get_text_of(example))
                    for example in recent
                    if example.context_id == self.context.pk
                ]
            ),
            "is_newcomer": SimpleLazyObject(
                lambda: selectors.is_newcomer(assignment.annotator, self.task)
            ),
            "parent_verdict": build_result_panel(self.parent) if self.parent else None,
            "offers_edit": SimpleLazyObject(lambda: self._offers_edit),
            "worked": SimpleLazyObject(lambda: list_gallery_examples(assignment)),
            "discovery": SimpleLazyObject(lambda: catch_beat.find_discovery(assignment)),
            "suggestion": SimpleLazyObject(assignment.suggestions.last),
        }


def build_result_panel(
    example: Example, is_new: bool = False, criteria_form: CriteriaForm | None = None
) -> dict[str, Any]:
    """Return the context of the result panel of a stored example.

    is_new: whether the example was just stored, so that it cannot have votes. criteria_form: the
    author's incomplete answer about the criteria.
    """
    config = example.round.task.config
    prefetch_related_objects([example], selectors.prefetch_outputs())  # if they are not there
    outputs = list(example.target_outputs.all())
    questions = result_panel.list_why_components(config, example.outcome, example.inputs)
    votes = build_empty_votes(example.round) if is_new else count_votes(example)
    panel = build_verdict_panel(example, config, outputs)
    # The round's own policy may differ from that of the configuration.
    panel["needed"] = votes.needed or panel["needed"]
    is_decision = config.verdict.type == "decide"
    can_retract = example.retracted_at is None and not votes.given and not is_decision
    criteria = list_criteria(config.verdict, example.inputs)
    # Once people have decided, or it is withdrawn, nothing is possible any more.
    if votes.state in JUDGED_EXAMPLE_STATES or example.retracted_at:
        panel |= {"possible_catch": None, "near_miss": None, "heading": panel["plain_heading"]}
    elif panel["possible_catch"]:
        panel["meaning"] = catch_beat.describe_meaning(example, config)
    if votes.is_validated_error:
        panel["heading"] = _("Catch confirmed")
    return {
        **panel,
        "example": example,
        "is_new": is_new,
        "votes": votes,
        "looks_personal": contains_contact_details(get_written_text(config, example.inputs)),
        "why_form": build_why_form(questions, example.metadata) if example.metadata else None,
        "why_fields": render_blank_fields(tuple(questions), get_language()),
        "criteria_form": criteria_form or (CriteriaForm(criteria=criteria) if criteria else None),
        "criteria_said": result_panel.list_author_judgements(criteria, outputs),
        "can_retract": can_retract,
        "asks_author": can_retract and example.outcome == Example.Outcome.UNDECIDED,
    }


def describe_examples_left(round: Round, written_count: int) -> str:
    """Describe how many more examples the person may write in the round; empty without a cap."""
    left_count = selectors.count_left_in_round(round, written_count)
    if left_count is None:
        return ""
    return _("Examples left for you in this round: %(number)d") % {"number": left_count}


def build_verdict_panel(example: Example, config: Any, outputs: list[Any]) -> dict[str, Any]:
    """Return the panel's context about the verdict on a stored example or a try-out."""
    # The conversation has what the model said to somebody who decided.
    answers = (
        []
        if config.verdict.type == "decide"
        else result_panel.build_answers(example, config, outputs)
    )
    fooled_count = sum(answer.fooled is True for answer in answers)
    own_chance = result_panel.find_own_chance(answers)
    first_chances = outputs[0].prob if outputs else None
    plain_heading = result_panel.build_heading(example.outcome, fooled_count, len(answers), config)
    heading, catch = plain_heading, catch_beat.describe_possible_catch(example, config, answers)
    if catch:
        heading = catch_beat.build_catch_heading(catch)
    return {
        "panel": "annotation/_result.html",
        "outcome": example.outcome,
        "heading": heading,
        "plain_heading": plain_heading,
        "answers": answers,
        "asked": SimpleLazyObject(lambda: result_panel.get_author_question(config)),
        "written": _get_written_text(config, example.inputs),
        "media": render_media(config, example.inputs),
        "own_chance": own_chance,
        "possible_catch": catch,
        "near_miss": catch_beat.describe_near_miss(example, config, first_chances, own_chance),
        "you_said": _get_own_answer(config, example),
        "threshold": getattr(config.verdict, "threshold", None),
        "needed": config.validation.votes.needed,
        "kept_words": (
            result_panel.describe_unjudged_example(config)[1]
            if example.outcome == Example.Outcome.NOT_FOOLED
            else ""
        ),
    }


def _get_written_text(config: TaskConfig, inputs: Mapping[str, Any]) -> str:
    """Return the author's text for the panel.

    A conversation includes the model's turns.
    """
    if talk := config.talk:
        return config.display(talk.name, inputs[talk.name])
    # The answer is shown beside the models' answers, so the text is without it.
    own_inputs = {name: inputs[name] for name in {*inputs} - {*config.target_fields}}
    return get_written_text(config, own_inputs)


def _get_own_answer(config: TaskConfig, example: Example) -> str:
    """Return the author's own answer, shown beside the models'; empty if there is none."""
    if config.goal.field and len(config.target_fields) <= 1:
        return config.display(config.goal.field, example.goal)
    return result_panel.format_answer(config, example.inputs)


def render_write_page(
    request: HttpRequest,
    page: WritePage,
    panel: Mapping[str, Any] | None = None,
    *,
    form: ExampleForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the write page, or for htmx the panel or the form with its errors."""
    part = "panel" if panel else "form"
    response = render_page(
        request,
        TEMPLATE,
        {**page.build_context(form), **(panel or {})},
        block_name=part,
        status=status,
    )
    if part == "form":
        # The browser expects a panel, so these headers name the form in its place.
        response["HX-Retarget"], response["HX-Reswap"] = "#form", "outerHTML"
    return response


def render_refused_page(
    request: HttpRequest, page: WritePage, error: Refused, form: ExampleForm | None = None
) -> HttpResponse:
    """Render the write page with the reason why nothing was stored."""
    refusal = {
        "panel": "annotation/_refused.html",
        "said": str(error),
        "code": error.code,
        "example": getattr(error, "example", None),
        "reload": isinstance(error, StaleForm),
    }
    return render_write_page(request, page, refusal, form=form, status=error.status)


def render_attempt(
    request: HttpRequest,
    page: WritePage,
    attempt: Attempt,
    *,
    is_new: bool = False,
    is_polled: bool = False,
) -> HttpResponse:
    """Render the state of an attempt: the verdict, in progress, or failed.

    is_polled: whether a page that polls for the attempt sent the request; that page does not list
    the attempt yet.
    """
    page = page.copy_for_attempt(attempt)
    if attempt.state == Attempt.State.DONE and attempt.example:
        attempt.example.round = page.round  # read with its policy
        panel = {**build_result_panel(attempt.example, is_new), "is_polled": is_polled}
        return render_write_page(request, page, panel)
    if attempt.state == Attempt.State.ASKING:
        waiting_panel = {"panel": "annotation/_waiting.html", "attempt": attempt}
        response = render_write_page(request, page, waiting_panel, status=202)
        # Without JavaScript the browser asks again, there and not at the address of the form.
        response["Refresh"] = f"5; url={reverse('annotation:attempt', args=[attempt.uuid])}"
        return response
    response = render_failed_page(request, page, attempt.failure)
    # Only where the same text may succeed later, and not in a closed round.
    if response.status_code == 503:
        response["Retry-After"] = "10"
    return response


def render_failed_page(
    request: HttpRequest, page: WritePage, failure: str, form: ExampleForm | None = None
) -> HttpResponse:
    """Render the write page with the reason for an attempt's `failure`."""
    message, is_broken = (
        _(FAILURE_MESSAGES.get(failure, NO_ANSWER_MESSAGE)),
        failure in BROKEN_REASONS,
    )
    failed_panel = {"panel": "annotation/_failed.html", "said": message, "is_broken": is_broken}
    return render_write_page(
        request, page, failed_panel, form=form, status=STATUS_BY_FAILURE.get(failure, 503)
    )
