"""Validators of what an owner writes in the site's own formats, with one error per problem."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from dynabench.campaigns.rules.own_rules import RuleError, read_rules
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from tasks.config.parsing import ConfigError


def check_rules(text: str) -> None:
    """Check that each line is a valid rule. Raises ValidationError with the problems by line."""
    try:
        read_rules(text)
    except RuleError as error:
        messages = []
        for problem in error.problems:
            problem_text = _(problem.message) % problem.words
            # Translators: of a file; what: a clause without a full stop
            line_message = _("Line %(line)d: %(what)s.")
            messages.append(line_message % {"line": problem.line, "what": problem_text})
        raise ValidationError(messages) from None


def check_questionnaire(text: str) -> None:
    """Check a questionnaire. Raises ValidationError with each problem's line and remedy."""
    try:
        read_questionnaire(text)
    except ConfigError as error:
        raise ValidationError([str(problem) for problem in error.problems]) from None
