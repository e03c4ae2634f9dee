"""Descriptions of first catches for pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.writing.catch_beat import name_challenge
from dynabench.catches.models import FirstCatch
from dynabench.catches.rules import CHALLENGE, TAG
from tasks.config.schema import TaskConfig


def describe_first_catch(config: TaskConfig, first: FirstCatch) -> str:
    """Return what a first catch was the first with, such as "First catch with numbers".

    config: the configuration of its task.
    """
    if first.slice == CHALLENGE:
        # Translators: what: a kind of example, such as: numbers
        return _("First catch with %(what)s") % {"what": name_challenge(first.value)}
    if first.slice == TAG:
        # Translators: what: a topic of texts, such as: weather
        return _("First catch about %(what)s") % {"what": first.value}
    words = config.display(first.slice, first.value)
    # Translators: what: a label, such as: positive
    return _("First catch as %(what)s") % {"what": words}


def describe_first_catches(examples: Sequence[Example]) -> Mapping[int, list[str]]:
    """Return the descriptions of the first catches among the examples, by example id. One query."""
    examples_by_id = {example.pk: example for example in examples}
    descriptions: dict[int, list[str]] = {}
    for first in FirstCatch.objects.filter(example__in=examples_by_id):
        config: Any = examples_by_id[first.example_id].round.task.config
        descriptions.setdefault(first.example_id, []).append(describe_first_catch(config, first))
    return descriptions
