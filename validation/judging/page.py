"""Read-only values of the judge page, without anything that is hidden before a vote."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext, override

from annotation.models import Example
from annotation.open_round import is_open_now
from annotation.writing import result_panel
from core.accounts.models import Annotator
from core.days import get_today
from core.text.markdown import render_sections
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Round, Task, parse_config
from tasks.permissions import can_judge_as_owner, can_review
from validation.consensus.claims import (
    find_confirming_verdict,
    find_label_field,
    is_about_model,
    is_only_attempt_judged,
    is_proved,
)
from validation.consensus.criteria import list_judged_criteria
from validation.judging import blind, queue, steps, vote_caps
from validation.judging.assignments import has_finished_assignment
from validation.judging.confirmed import do_votes_count
from validation.judging.forms import AfterVoteForm, CriteriaVoteForm, FlagForm, VoteForm
from validation.judging.services import JudgeSession
from validation.judging.wording import (
    build_choices,
    build_legend,
    describe_claim,
    describe_verdict,
    get_judges_title,
)
from validation.models import Choice, GoldAnswer, Validation


def list_shown_inputs(config: TaskConfig, example: Example) -> list[tuple[str, str]]:
    """Return (label, text) pairs of the author's inputs that `build_blind_inputs` shows."""
    return [
        (get_judges_title(config.get_component(name)), render_value(config, name, value))
        for name, value in blind.build_blind_inputs(config, example).items()
    ]


def list_inputs_with_criteria(config: TaskConfig, example: Example) -> list[tuple[str, str]]:
    """Return the same pairs and the criteria, for pages that do not ask about each of them."""
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    if not criteria or config.verdict.type != "criteria":
        return list_shown_inputs(config, example)
    # Without points, which judges do not see either.
    lines = [f"{number}. {criterion.text}" for number, criterion in enumerate(criteria, 1)]
    title = get_judges_title(config.get_component(config.verdict.field))
    return [*list_shown_inputs(config, example), (title, "\n".join(lines))]


def render_fields(form: FlagForm) -> SafeString:
    """Render the visible fields, one below another."""
    return format_html_join(
        "", "{}", ((field.as_field_group(),) for field in form.visible_fields())
    )


# Most pages show forms in which nothing is typed yet: the same for all examples of a task, in each
# language.


def build_vote_form(config: TaskConfig, example: Example, data: Any) -> VoteForm | CriteriaVoteForm:
    """Build the vote form for an example."""
    if criteria := list_judged_criteria(config, example.outcome, example.inputs):
        return CriteriaVoteForm(data, config=config, criteria=criteria)
    return VoteForm(data, config=config, legend=build_legend(config, example), example=example)


# Keyed by the configuration's text, so that a changed one gets a new entry.
@lru_cache(256)
def render_blank_flag(
    config_text: str, question_names: Sequence[str], language: str | None
) -> SafeString:
    """Render an empty flag form with these questions of the task."""
    config = parse_config(config_text)
    with override(language):
        questions = [
            question for question in config.judge_questions if question.name in question_names
        ]
        return render_fields(FlagForm(questions, config=config))


def build_flag_form(example: Example, data: Any) -> FlagForm:
    """Return an example's flag form for the page and the API; unbound if `data` is None."""
    config, context = example.round.task.config, example.context.fields
    questions = blind.list_questions(config, None, example)
    return FlagForm(questions, data, config=config, context=context)


def build_page_values(
    session: JudgeSession,
    form: VoteForm | CriteriaVoteForm | None = None,
    flag_form: FlagForm | None = None,
    saved_answer: Validation | GoldAnswer | None = None,
) -> dict[str, Any]:
    """Return the template's values. saved_answer: the vote that was stored just now."""
    task, validator = session.task, session.validator
    undo = _find_undoable_answer(session, saved_answer)
    judged_count = count_judgements_today(validator, task, session.gold)
    values: dict[str, Any] = {
        "task": task,
        "judged": judged_count,
        "is_first": not judged_count,
        "undo": undo,
        "you_said": describe_choice(task.config, undo, undo.example) if undo else "",
    }
    # Only the refresher, which must be read before the next example.
    if session.is_paused:
        return {
            **values,
            "instructions": render_sections(task.config.instructions),
            "missed": [
                describe_missed_answer(task.config, gold_answer)
                for gold_answer in select_missed_answers(session.gold)
            ],
        }
    if session.lease:
        example = session.lease.example
        values["assignment_words"] = session.find_part(example.round_id).progress_text
        values["about"] = judged_count + _count_waiting(example.round)
        return {**values, **_build_example_values(task, example, form, flag_form)}
    # From here on there is nothing to judge; the first reason that applies is shown.
    # A cached answer may still say that the task has an example for this person.
    queue.forget_places(validator, task)
    if blind.can_read_labels(validator, task):
        # Never None here: only people with an account read labels.
        user: Any = validator.user
        values |= {
            "may_review": can_review(user, task),
            "can_judge_as_owner": can_judge_as_owner(user, task),
        }
        # Members of one task are often judges of another.
        other_queues = queue.list_other_queues(validator, task)
        return {**values, "reads_labels": True, "other_queues": other_queues}
    if not do_votes_count(validator, task):
        return {**values, "unconfirmed": True}
    return {
        **values,
        "has_finished_assignment": has_finished_assignment(validator, task),
        "full_round": vote_caps.find_full_round(validator, task),
        "other_queues": queue.list_other_queues(validator, task),
        "is_written_now": is_open_now(task),
    }


def _count_waiting(round: Round) -> int:
    """Return the approximate number of examples of the round that wait for votes, at least 1.

    Also of those that are not queued yet, because the queue is filled bit by bit.
    """
    return max(queue.count_waiting_roughly([round])[round.pk], 1)


def _build_example_values(
    task: Task,
    example: Example,
    form: VoteForm | CriteriaVoteForm | None,
    flag_form: FlagForm | None,
) -> dict[str, Any]:
    config, config_text, language = task.config, task.config_text, get_language()
    # Criteria differ from example to example, so their form cannot be kept as the buttons are.
    empty_form = form or build_vote_form(config, example, None)
    criteria_form = empty_form if isinstance(empty_form, CriteriaVoteForm) else None
    question_names = tuple(
        question.name for question in blind.list_questions(config, None, example)
    )
    return {
        "example": example,
        "round": example.round,
        "context": example.context,
        "shown_context": steps.list_shown_context(config, example, form),
        "shown_inputs": list_shown_inputs(config, example),
        "form": form,
        "of_attempt": is_only_attempt_judged(config, example),
        "asks": build_legend(config, example),
        # The page numbers the two parts of the answer only where there are two.
        "of_steps": bool(steps.list_example_steps(config, example)),
        "criteria_form": criteria_form,
        "answers": () if criteria_form else choose_colours(config, build_choices(config, example)),
        "model_said": list_model_answers(config, example),
        "flag_form": flag_form,
        "flag_fields": render_fields(flag_form)
        if flag_form
        else render_blank_flag(config_text, question_names, language),
        "instructions": render_sections(config.instructions),
    }


def choose_colours(
    config: TaskConfig, offered_choices: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """Return (answer, text, colour) of a validator's choices; the colour may be empty."""
    field = find_label_field(config)
    colours = config.get_component(field).colours if field else {}
    return tuple(
        (choice, text, colours.get(choice.removeprefix("label:"), ""))
        for choice, text in offered_choices
    )


def select_missed_answers(answers: Sequence[GoldAnswer]) -> Sequence[GoldAnswer]:
    """Return a person's wrong answers to gold items since their last refresher."""
    wrong_answers = [answer for answer in answers if answer.counts and not answer.is_correct]
    # One query for each relation, however many answers were wrong.
    prefetch_related_objects(wrong_answers, "gold__example__context")
    return wrong_answers


def _find_undoable_answer(
    session: JudgeSession, saved_answer: Validation | GoldAnswer | None
) -> Validation | GoldAnswer | None:
    """Return the vote, or the answer to a gold item, that can be undone.

    The page shows both alike.
    """
    last_answer = saved_answer or queue.find_last_vote(session.validator, session.task)
    not_before = last_answer.created_at if last_answer else timezone.now() - queue.UNDO_TIME
    # Answers to gold are sorted by age, so the last one is the latest.
    if not saved_answer and session.gold and session.gold[-1].created_at > not_before:
        last_answer = session.gold[-1]
    return None if last_answer is None or blind.is_final(last_answer, session.task) else last_answer


def find_own_vote(validator: Annotator, uuid: UUID) -> Validation | GoldAnswer:
    """Return a person's vote on an example, or their answer to a gold item. Raises Http404."""
    rows = Validation.objects.select_related("example__context", "example__round__task")
    vote = rows.filter(example__uuid=uuid, validator=validator, is_imported=False).first()
    answers = GoldAnswer.objects.select_related(
        "gold__example__context", "gold__example__round__task"
    )
    # The vote first: an example that became gold keeps its earlier votes.
    return vote or get_object_or_404(answers, gold__example__uuid=uuid, validator=validator)


def count_judgements_today(validator: Annotator, task: Task, answers: Sequence[GoldAnswer]) -> int:
    """Count the examples, including gold items, that the validator has judged since 00:00 UTC.

    Leaves out the test of a study, which is not work and for which no time is recorded.
    """
    today = get_today()
    timed_answers = [answer for answer in answers if answer.seconds is not None]
    gold_count = sum(answer.created_at.date() == today for answer in timed_answers)
    return queue.count_judged_today(validator, task) + gold_count


def describe_missed_answer(config: TaskConfig, answer: GoldAnswer) -> dict[str, Any]:
    """Return the template's values for a missed gold item, with the correct answer explained."""
    return {
        "context": result_panel.list_shown_fields(config, answer.example.context),
        "inputs": list_inputs_with_criteria(config, answer.example),
        "model_said": list_model_answers(config, answer.example),
        "said": describe_choice(config, answer, answer.example),
        "right": describe_choice(config, answer.gold, answer.example),
        "explanation": answer.gold.explanation,
    }


def describe_choice(config: TaskConfig, choice: Choice, example: Example) -> str:
    """Describe a label or a verdict."""
    field = find_label_field(config) or config.answer_field
    # Imported votes may be labels even if the task's judges give verdicts.
    if choice.label:
        return config.display(field, choice.label)
    if text := describe_verdict(config, choice.verdict, example):
        return text
    choice_text = dict(build_choices(config, example)).get(f"verdict:{choice.verdict}")
    return choice_text or choice.get_verdict_display()  # type: ignore[attr-defined, no-any-return]


def describe_author_claim(config: TaskConfig, example: Example) -> str:
    """Describe the author's claim: a label, an answer, or whether the model is right."""
    claim = find_confirming_verdict(config, example.outcome)
    if claim and is_proved(config, example):
        return describe_claim(config, claim)
    if is_about_model(config, example.outcome):
        return describe_verdict(config, claim or "", example)
    field = find_label_field(config) or config.answer_field
    return config.display(field, example.inputs.get(field))


def list_model_answers(config: TaskConfig, example: Example) -> list[tuple[str, str]]:
    """Return the (name, answer) pair of each model, if models' answers are judged.

    Does not say which of them was fooled.
    """
    if not is_about_model(config, example.outcome) or not example.pk:
        return []
    outputs = example.target_outputs.select_related("target")
    return [
        (answer.name, answer.words)
        for answer in result_panel.build_answers(example, config, list(outputs))
    ]


def describe_revealed_answer(config: TaskConfig, vote: Validation | GoldAnswer) -> dict[str, Any]:
    """Return the author's label and the targets' answers, for a person who has voted."""
    example = vote.example
    answers = result_panel.build_answers(
        example, config, list(example.target_outputs.select_related("target"))
    )
    return {
        "author_said": describe_author_claim(config, example),
        "by_rule": is_proved(config, example),
        "answers": answers,
        "you_said": describe_choice(config, vote, example),
    }


def describe_saved_answer(judged_count: int) -> str:
    """Return a message that an answer is saved, with the number of today's answers."""
    message = ngettext("Saved. %(number)d judged.", "Saved. %(number)d judged.", judged_count)
    return message % {"number": judged_count}


def build_after_form(vote: Validation | GoldAnswer, data: Any = None) -> AfterVoteForm:
    """Build the form for the step after the vote."""
    config = vote.example.round.task.config
    return AfterVoteForm(
        blind.list_questions(config, vote, vote.example),
        data,
        config=config,
        has_reveal=blind.should_reveal_label(config, vote),
        example=vote.example,
        context=vote.example.context.fields,
    )
