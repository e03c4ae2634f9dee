"""The judge page's values, read and never written. They hold nothing that is to stay blind."""

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
from annotation.writing import result_panel
from core.accounts.models import Annotator
from core.days import today
from core.text.markdown import render_markdown
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Task, parsed_config
from tasks.permissions import can_review, may_be_blind
from validation.consensus.claims import (
    asks_of_attempt,
    find_confirming_verdict,
    find_label_field,
    is_about_model,
    is_proved,
)
from validation.judging import blind, queue, vote_caps
from validation.judging.assignments import is_asked_no_more
from validation.judging.confirmed import may_decide
from validation.judging.forms import AfterForm, FlagForm, VoteForm
from validation.judging.services import JudgeSession
from validation.judging.wording import (
    choices,
    claim_words,
    judges_title,
    legend,
    verdict_words,
)
from validation.models import Choice, GoldAnswer, Validation


def shown_inputs(config: TaskConfig, example: Example) -> list[tuple[str, str]]:
    """Return (label, text) pairs of the author's inputs, as far as `blind_inputs` shows them."""
    return [
        (judges_title(config.component(name)), render_value(config, name, value))
        for name, value in blind.blind_inputs(config, example).items()
    ]


def fields_of(form: FlagForm) -> SafeString:
    """Render the visible fields, one below another."""
    return format_html_join(
        "", "{}", ((field.as_field_group(),) for field in form.visible_fields())
    )


# Most pages show forms in which nothing is typed yet: the same for all examples of a task, in each
# language.


def vote_form(config: TaskConfig, example: Example, data: Any) -> VoteForm:
    """Build the vote form for an example."""
    return VoteForm(data, config=config, legend=legend(config, example), example=example)


# By the text of the configuration, so that a changed one is another entry.
@lru_cache(256)
def blank_flag(config_text: str, question_names: Sequence[str], language: str | None) -> SafeString:
    """Render an empty flag form with these questions of the task."""
    config = parsed_config(config_text)
    with override(language):
        questions = [c for c in config.judge_questions if c.name in question_names]
        return fields_of(FlagForm(questions, config=config))


def flag_form(example: Example, data: Any) -> FlagForm:
    """Return the bound flag form, for the page and the API."""
    config, context = example.round.task.config, example.context.fields
    questions = blind.questions(config, None, example)
    return FlagForm(questions, data, config=config, context=context)


def page_values(
    session: JudgeSession,
    form: VoteForm | None = None,
    flag_form: FlagForm | None = None,
    saved: Validation | GoldAnswer | None = None,
) -> dict[str, Any]:
    """Return the template's values. saved: the vote that was stored just now."""
    task, validator = session.task, session.validator
    undo = _last_answer(session, saved)
    judged_count = judged_today(validator, task, session.gold)
    values: dict[str, Any] = {
        "task": task,
        "judged": judged_count,
        "is_first": not judged_count,
        "undo": undo,
        "you_said": choice_words(task.config, undo, undo.example) if undo else "",
    }
    # The refresher alone: its right answers must be read before the next example.
    if session.is_paused:
        return {
            **values,
            "missed": [
                shown_miss(task.config, gold_answer) for gold_answer in select_missed(session.gold)
            ],
        }
    if session.lease:
        example = session.lease.example
        values["assignment_words"] = session.parts(example.round_id).words
        return {**values, **_example_values(task, example, form, flag_form)}
    # From here on there is nothing to judge; the first reason that holds is shown.
    if blind.reads_labels(validator, task):
        # Never None here: only people with an account read labels.
        user: Any = validator.user
        values |= {"may_review": can_review(user, task), "may_be_blind": may_be_blind(user, task)}
        return {**values, "reads_labels": True}
    if not may_decide(validator, task):
        return {**values, "unconfirmed": True}
    return {
        **values,
        "is_asked_no_more": is_asked_no_more(validator, task),
        "full_round": vote_caps.full_round(validator, task),
        "other_queues": queue.other_queues(validator, task),
    }


def _example_values(
    task: Task, example: Example, form: VoteForm | None, flag_form: FlagForm | None
) -> dict[str, Any]:
    config, text, spoken = task.config, task.config_text, get_language()
    question_names = tuple(question.name for question in blind.questions(config, None, example))
    return {
        "example": example,
        "round": example.round,
        "context": example.context,
        "shown_context": result_panel.list_shown_fields(config, example.context),
        "shown_inputs": shown_inputs(config, example),
        "form": form,
        "of_attempt": asks_of_attempt(config, example),
        "asks": legend(config, example),
        "answers": colour_choices(config, choices(config, example)),
        "model_said": list_model_answers(config, example),
        "flag_form": flag_form,
        "flag_fields": fields_of(flag_form)
        if flag_form
        else blank_flag(text, question_names, spoken),
        "instructions": render_markdown(config.instructions),
    }


def colour_choices(
    config: TaskConfig, offered_choices: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """Return (answer, text, colour) of a validator's choices; the colour may be empty."""
    field = find_label_field(config)
    colours = config.component(field).colours if field else {}
    return tuple(
        (choice, words, colours.get(choice.removeprefix("label:"), ""))
        for choice, words in offered_choices
    )


def select_missed(answers: Sequence[GoldAnswer]) -> Sequence[GoldAnswer]:
    """Return a person's wrong answers to gold items since their last refresher."""
    wrong_answers = [answer for answer in answers if answer.counts and not answer.is_correct]
    # One query for each relation, however many answers were wrong.
    prefetch_related_objects(wrong_answers, "gold__example__context")
    return wrong_answers


def _last_answer(
    session: JudgeSession, saved_answer: Validation | GoldAnswer | None
) -> Validation | GoldAnswer | None:
    """Return the vote, or the answer to a gold item, that can be undone.

    The page shows both alike.
    """
    last_answer = saved_answer or queue.last_vote(session.validator, session.task)
    since = last_answer.created_at if last_answer else timezone.now() - queue.UNDO_TIME
    # Answers to gold come oldest first, so the last one is the latest.
    if not saved_answer and session.gold and session.gold[-1].created_at > since:
        last_answer = session.gold[-1]
    return None if last_answer is None or blind.is_final(last_answer, session.task) else last_answer


def own_vote(validator: Annotator, uuid: UUID) -> Validation | GoldAnswer:
    """Return a person's vote on an example, or their answer to a gold item. Raises Http404."""
    rows = Validation.objects.select_related("example__context", "example__round__task")
    vote = rows.filter(example__uuid=uuid, validator=validator, is_imported=False).first()
    answers = GoldAnswer.objects.select_related(
        "gold__example__context", "gold__example__round__task"
    )
    # The vote first: an example that became gold keeps the votes that it had.
    return vote or get_object_or_404(answers, gold__example__uuid=uuid, validator=validator)


def judged_today(validator: Annotator, task: Task, answers: Sequence[GoldAnswer]) -> int:
    """Count the examples that the validator has judged since 00:00 UTC, with gold items.

    Leaves out the test of a study, which is not work and for which no time is recorded.
    """
    day = today()
    worked = [answer for answer in answers if answer.seconds is not None]
    extra = sum(answer.created_at.date() == day for answer in worked)
    return queue.judged_today(validator, task) + extra


def shown_miss(config: TaskConfig, answer: GoldAnswer) -> dict[str, Any]:
    """Return the template's values for a missed gold item, with the correct answer and why."""
    return {
        "context": result_panel.list_shown_fields(config, answer.example.context),
        "inputs": shown_inputs(config, answer.example),
        "model_said": list_model_answers(config, answer.example),
        "said": choice_words(config, answer, answer.example),
        "right": choice_words(config, answer.gold, answer.example),
        "explanation": answer.gold.explanation,
    }


def choice_words(config: TaskConfig, choice: Choice, example: Example) -> str:
    """Describe a label or a verdict."""
    field = find_label_field(config) or config.answer_field
    # Imported votes may be labels even where the judges of the task give verdicts.
    if choice.label:
        return config.display(field, choice.label)
    if words := verdict_words(config, choice.verdict, example):
        return words
    offered = dict(choices(config, example)).get(f"verdict:{choice.verdict}")
    return offered or choice.get_verdict_display()  # type: ignore[attr-defined, no-any-return]


def describe_author_claim(config: TaskConfig, example: Example) -> str:
    """Describe the author's claim: a label, an answer, or whether the model is right."""
    claim = find_confirming_verdict(config, example.outcome)
    if claim and is_proved(config, example):
        return claim_words(config, claim)
    if is_about_model(config, example.outcome):
        return verdict_words(config, claim or "", example)
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


def describe_revealed(config: TaskConfig, vote: Validation | GoldAnswer) -> dict[str, Any]:
    """Return the author's label and the targets' answers, for a person who has voted."""
    example = vote.example
    answers = result_panel.build_answers(
        example, config, list(example.target_outputs.select_related("target"))
    )
    return {
        "author_said": describe_author_claim(config, example),
        "by_rule": is_proved(config, example),
        "answers": answers,
        "you_said": choice_words(config, vote, example),
    }


def saved_words(judged_count: int) -> str:
    """Return a message that an answer is saved, with the number of today's answers."""
    words = ngettext("Saved. %(number)d judged.", "Saved. %(number)d judged.", judged_count)
    return words % {"number": judged_count}


def after_form(vote: Validation | GoldAnswer, data: Any = None) -> AfterForm:
    """Build the form for the step after the vote."""
    config = vote.example.round.task.config
    return AfterForm(
        blind.questions(config, vote, vote.example),
        data,
        config=config,
        reveal=blind.asks_reveal(config, vote),
        written=vote.example,
        context=vote.example.context.fields,
    )
