"""Store what authors say about a text, and the counts of labelled studies."""

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.machine_text.selectors import LabelledStudyResult
from annotation.models import Example, SignalStudy
from annotation.refusals import NotAllowed
from annotation.rules.writing_conditions import ASK, get_condition


@transaction.atomic
def store_model_answer(*, example: Example, has_used_model: bool) -> Example:
    """Store whether the author says that a language model wrote any of the text.

    It changes neither the example nor any pay. A later answer replaces an earlier one. Locks the
    example. Raises NotAllowed if the question was not drawn for the text.
    """
    locked_example = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
    if get_condition(locked_example.signs) != ASK:
        raise NotAllowed(_("There's no question about this text."))
    locked_example.signs = {**(locked_example.signs or {}), "admitted": has_used_model}
    locked_example.save(update_fields=["signs"])
    return locked_example


def store_signal_study(*, name: str, result: LabelledStudyResult) -> SignalStudy:
    """Store a study's counts; from now on they are the site's error rates. Takes no lock."""
    return SignalStudy.objects.create(
        name=name, counts=result.counts, signal_rates=result.signal_rates
    )
