"""Writes about paraphrases: asking for them, people's checks, the version that gets them."""

from collections.abc import Collection, Mapping

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.contract import MOST_BASES
from evaluation.judges.paraphrases.selectors import fitting
from evaluation.models import EvaluationSet, EvaluationSetVersion, Paraphrase, Paraphrasing
from evaluation.runs.chat.target_services import CHAT, settings_of
from evaluation.sets.selectors import latest_version
from tasks.config.schema import TaskConfig
from tasks.models import TargetModel

State = Paraphrase.State
MOST = 2000
"""Examples for which a model is asked each time; people check every one."""
OF_VERSION = (
    *("evaluation_set", "inputs", "gold", "sha256", "size", "slices", "dataset", "overlap"),
    *("exposed_at", "settled_at", "judged", "to_judge"),
)
"""What a version shares with the one before it that has the same examples."""


def words_of(config: TaskConfig) -> tuple[str, ...]:
    """The fields that may be said in other words: texts, but no passage of which answers quote."""
    answer = config.component(config.answer_field)
    quoted = answer.reference if answer.type == "span" else None
    return tuple(
        name
        for name in config.model_fields
        if config.component(name).kind.is_text and name != quoted
    )


def ask_for_paraphrases(
    *, evaluation_set: EvaluationSet, target: TargetModel, prompt: str, size: int, actor: User
) -> Paraphrasing:
    """Have a chat model of the task say so many examples of a set in other words.

    No lock: a set has one such job at a time by a constraint. Raises Refused.
    """
    check_may_ask(evaluation_set, target)
    try:
        with transaction.atomic():
            job = Paraphrasing.objects.create(
                evaluation_set=evaluation_set,
                target=target,
                prompt=prompt,
                asked_with=settings_of(target),
                size=size,
                requested_by=actor,
            )
            log(actor, "paraphrases.asked", evaluation_set, model=target.name, size=size)
    except IntegrityError:
        raise Refused(_("A model is being asked about this set now. Wait for its end.")) from None
    enqueue(job.function, job.pk)
    return job


def check_may_ask(one: EvaluationSet, target: TargetModel) -> None:
    """Raises Refused where a set cannot be said in other words, or not by this model."""
    config, version = one.task.config, latest_version(one)
    if target.adapter != CHAT or target.task_id != one.task_id:
        raise Refused(_("Choose a chat model among the task's targets (openai_chat)."))
    if config.media_fields:
        raise Refused(
            _("Examples with pictures or recordings are not said in other words: nobody who checks "
              "them would see these here.")
        )  # fmt: skip
    if not words_of(config):
        raise Refused(_("Models read no text here that could be said in other words."))
    if version is None or version.size > MOST_BASES:
        raise Refused(_("The set needs a version of at most 100,000 examples."))
    if target.url and not one.may_leave:
        raise Refused(
            _("The inputs of this set may not leave, and the model is elsewhere. Choose another "
              "model, or let them leave on the page of the set.")
        )  # fmt: skip


@transaction.atomic
def decide_paraphrases(
    *, evaluation_set: EvaluationSet, decisions: Mapping[str, Collection[int]], actor: User
) -> int:
    """Keep or refuse paraphrases, by their ids for each state; how many changed.

    No lock: the last decision holds. What a version has is decided for good.
    """
    count = 0
    for state in (State.KEPT, State.REFUSED):
        open_ones = Paraphrase.objects.filter(
            job__evaluation_set=evaluation_set,
            versions=None,
            state__in={State.WAITING, State.KEPT, State.REFUSED} - {state},
            pk__in=decisions.get(state, ()),
        )
        count += open_ones.update(state=state, checked_by=actor, checked_at=timezone.now())
    if count:
        log(actor, "paraphrases.checked", evaluation_set, count=count)
    return count


def take_paraphrases(*, evaluation_set: EvaluationSet, actor: User) -> EvaluationSetVersion:
    """The next version of a set: the same examples, with the paraphrases that people kept.

    Locks the set. Raises Refused where none was kept since the last version.
    """
    last = latest_version(evaluation_set)
    kept = {one.pk for one, _row in fitting(last, State.KEPT)} if last else set()
    with transaction.atomic():
        locked = EvaluationSet.objects.select_for_update(of=("self",)).get(pk=evaluation_set.pk)
        if last is None or latest_version(locked) != last:
            raise Refused(_("The set has another version since. Look at it and try again."))
        if kept <= set(last.paraphrases.values_list("pk", flat=True)):
            raise Refused(_("No paraphrase was kept since the last version."))
        same = {name: getattr(last, name) for name in OF_VERSION}
        made = EvaluationSetVersion.objects.create(version=last.version + 1, made_by=actor, **same)
        made.paraphrases.set(kept)
        log(actor, "evaluation_set.version", made, size=made.size, paraphrases=len(kept))
    return made
