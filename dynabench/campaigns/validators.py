"""Checks of what an owner writes in a language of ours, with an error for each line."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from dynabench.campaigns.rules.own_rules import RuleError, read_rules
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from tasks.config.parsing import ConfigError


def check_rules(text: str) -> None:
    """Check that each line is a valid rule. Raises ValidationError for each invalid line."""
    try:
        read_rules(text)
    except RuleError as error:
        messages = []
        for problem in error.problems:
            what = _(problem.message) % problem.words
            # Translators: of a file; what: a clause without a full stop
            messages.append(_("Line %(line)d: %(what)s.") % {"line": problem.line, "what": what})
        raise ValidationError(messages) from None


def check_questionnaire(text: str) -> None:
    """Check a questionnaire. Raises ValidationError with each problem's line and remedy."""
    try:
        read_questionnaire(text)
    except ConfigError as error:
        raise ValidationError([str(problem) for problem in error.problems]) from None
