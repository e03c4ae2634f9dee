"""The questions that a study asks before and after the work, defined as task fields. Pure."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from tasks.config.checks import find_field_errors
from tasks.config.components import FIELD_TYPES, Component, ConfigPart, TupleOf
from tasks.config.messages import list_problems, sort_problems
from tasks.config.parsing import ConfigError, Finding, Loc, read_yaml

Questions = Annotated[TupleOf[Component], Field(max_length=50)]


class Questionnaire(ConfigPart):
    """A study's questions, and its questions about the person, defined as task fields."""

    questions: Questions = ()
    """Questions whose answers the owner reads for each person, by pseudonym."""
    about: Questions = ()
    """Optional questions about the person. Owners only see counts of ten or more people."""
    after: Questions = ()
    """Questions that are asked once the work is done, with answers as those of `questions`."""

    @property
    def fields(self) -> tuple[Component, ...]:
        """Return the questions before the work, in the order in which they are shown."""
        return tuple(self.questions) + tuple(self.about)

    @property
    def answered_fields(self) -> tuple[Component, ...]:
        """Return the questions whose answers the owner reads for each person."""
        return tuple(self.questions) + tuple(self.after)

    @property
    def closing_part(self) -> "Questionnaire":
        """Return a questionnaire that asks only what is asked after the work."""
        return Questionnaire(questions=self.after)


_questionnaire: TypeAdapter[Questionnaire] = TypeAdapter(Questionnaire)


def list_question_types() -> list[str]:
    """Return the field types that a question may have: the ones that need no context."""
    return [
        name
        for name, field_type in FIELD_TYPES.items()
        if "metadata" in field_type.sections and "reference" not in field_type.keys
    ]


@lru_cache(256)
def read_questionnaire(text: str) -> Questionnaire:
    """Parse a questionnaire in YAML; an empty text gives no questions.

    Raises ConfigError with all problems. Cached, because every page of the study reads it.
    """
    if not text.strip():
        return Questionnaire()
    document = read_yaml(text, suggested_line="questions:")
    try:
        questionnaire = _questionnaire.validate_json(json.dumps(document.data))
    except ValidationError as error:
        # It lists the fields that there are, for the message about one that is not.
        schema = _questionnaire.json_schema()
        raise ConfigError(list_problems(error, document, schema)) from None
    findings = list(_find_problems(questionnaire))
    if findings:
        raise ConfigError(sort_problems(map(document.build_problem, findings)))
    # Nobody has to tell about themselves, whatever the text says.
    optional_questions = [
        question.model_copy(update={"required": False}) for question in questionnaire.about
    ]
    return questionnaire.model_copy(update={"about": tuple(optional_questions)})


def _find_problems(questionnaire: Questionnaire) -> Iterator[Finding]:
    """Yield the problems of a questionnaire that its schema cannot express."""
    names: set[str] = set()
    for key in ("questions", "about", "after"):
        for index, component in enumerate(getattr(questionnaire, key)):
            loc: Loc = (key, index)
            if component.name in names:
                fix = "use a different name for each question"
                yield Finding((*loc, "name"), f'"{component.name}" is there already', fix)
            names.add(component.name)
            yield from _find_unsupported_options(loc, key, component)
            yield from find_field_errors(loc, component)


def _find_unsupported_options(loc: Loc, key: str, component: Component) -> Iterator[Finding]:
    """Yield the problems with options that questions do not support although task fields do."""
    types = list_question_types()
    if key == "about":  # groups of people need answers that are the same
        types = [name for name in types if "labels" in FIELD_TYPES[name].keys]
    if component.type not in types:
        message = f"a {component.type} cannot be asked for here"
        yield Finding((*loc, "type"), message, f"use one of: {', '.join(types)}")
    if component.when is not None:
        yield Finding((*loc, "when"), "questions can't have conditions", "remove when")
