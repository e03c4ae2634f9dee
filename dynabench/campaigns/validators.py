"""What an owner writes in a language of ours is checked before it is stored, by line."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from dynabench.campaigns.rules.own_rules import RuleError, read_rules
from dynabench.campaigns.rules.questionnaire import read_questionnaire
from tasks.config.parsing import ConfigError


def check_rules(text: str) -> None:
    """Raises ValidationError with each line that is no rule."""
    try:
        read_rules(text)
    except RuleError as error:
        said = _("Line %(line)d: %(what)s.")
        lines = [{"line": one.line, "what": _(one.message) % one.words} for one in error.problems]
        raise ValidationError([said % line for line in lines]) from None


def check_questionnaire(text: str) -> None:
    """Raises ValidationError with each problem, its line and how to mend it."""
    try:
        read_questionnaire(text)
    except ConfigError as error:
        raise ValidationError([str(problem) for problem in error.problems]) from None
