"""Write paraphrases: request them, store people's checks, create the version that includes them."""

from collections.abc import Collection, Mapping

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.contract import MAX_PERTURBED_EXAMPLES
from evaluation.judges.paraphrases.selectors import iterate_current_paraphrases
from evaluation.models import EvaluationSet, EvaluationSetVersion, Paraphrase, Paraphrasing
from evaluation.runs.chat.target_services import CHAT_ADAPTER, read_target_settings
from evaluation.test_sets.selectors import find_latest_version
from tasks.config.schema import TaskConfig
from tasks.models import TargetModel

State = Paraphrase.State
MAX_EXAMPLES = 2000
"""The maximum number of examples per request, because people check every paraphrase."""
SHARED_COLUMNS = (
    "evaluation_set", "inputs", "gold", "sha256", "size", "slices", "dataset", "overlap",
    "exposed_at", "settled_at", "judged", "to_judge",
)  # fmt: skip
"""The columns that a version copies from the version before it, whose examples it shares."""


def find_text_fields(config: TaskConfig) -> tuple[str, ...]:
    """Return the text fields that may be paraphrased: all but a passage that answers quote."""
    answer = config.get_component(config.answer_field)
    quoted_field = answer.reference if answer.type == "span" else None
    fields = [name for name in config.model_fields if config.get_component(name).kind.is_text]
    return tuple(name for name in fields if name != quoted_field)


def request_paraphrases(
    *, evaluation_set: EvaluationSet, target: TargetModel, prompt: str, size: int, actor: User
) -> Paraphrasing:
    """Queue a job in which a chat model of the task paraphrases up to `size` examples of a set.

    Takes no lock: a constraint allows one such job per set at a time. Raises Refused.
    """
    check_paraphrasing_allowed(evaluation_set, target)
    try:
        with transaction.atomic():
            job = Paraphrasing.objects.create(
                evaluation_set=evaluation_set,
                target=target,
                prompt=prompt,
                asked_with=read_target_settings(target),
                size=size,
                requested_by=actor,
            )
            log(actor, "paraphrases.asked", evaluation_set, model=target.name, size=size)
    except IntegrityError:
        raise Refused(
            _("A model is already writing paraphrases for this set. Wait until that is done.")
        ) from None
    enqueue(job.function, job.pk)
    return job


def check_paraphrasing_allowed(evaluation_set: EvaluationSet, target: TargetModel) -> None:
    """Raise Refused if a set cannot be paraphrased, or not by this model."""
    config, version = evaluation_set.task.config, find_latest_version(evaluation_set)
    if target.adapter != CHAT_ADAPTER or target.task_id != evaluation_set.task_id:
        raise Refused(_("Choose one of the task's chat models (openai_chat)."))
    if config.media_fields:
        raise Refused(
            _("We can't paraphrase examples with pictures or recordings, because "
"people who check paraphrases see only texts.")
        )  # fmt: skip
    if not find_text_fields(config):
        raise Refused(_("This task has no texts that could be paraphrased."))
    if version is None or version.size > MAX_PERTURBED_EXAMPLES:
        raise Refused(_("The test set needs a version with at most 100,000 examples."))
    # A target without a URL runs on our own model server.
    if target.url and not evaluation_set.may_leave:
        raise Refused(
            _("This set's inputs can't leave the site, but the model runs elsewhere. "
                "Choose another model, or change this on the set's page.")
        )  # fmt: skip


@transaction.atomic
def decide_paraphrases(
    *, evaluation_set: EvaluationSet, decisions: Mapping[str, Collection[int]], actor: User
) -> int:
    """Accept or refuse paraphrases; return how many changed. decisions: their ids by new state.

    Paraphrases in a version of the set no longer change. Takes no lock: the last decision counts.
    """
    count = 0
    for state in (State.KEPT, State.REFUSED):
        # Without those of a version, which never changes, and those already in this state.
        undecided_paraphrases = Paraphrase.objects.filter(
            job__evaluation_set=evaluation_set,
            versions=None,
            state__in={State.WAITING, State.KEPT, State.REFUSED} - {state},
            pk__in=decisions.get(state, ()),
        )
        count += undecided_paraphrases.update(
            state=state, checked_by=actor, checked_at=timezone.now()
        )
    if count:
        log(actor, "paraphrases.checked", evaluation_set, count=count)
    return count


def create_paraphrased_version(
    *, evaluation_set: EvaluationSet, actor: User
) -> EvaluationSetVersion:
    """Create the next version of a set: the same examples, with the accepted paraphrases.

    Locks the set. Raises Refused if none was accepted since the last version.
    """
    last_version = find_latest_version(evaluation_set)
    # Read before the lock, because it reads the whole set. The version is compared afterwards.
    accepted_ids = set()
    if last_version:
        accepted_ids = {
            paraphrase.pk
            for paraphrase, _row in iterate_current_paraphrases(last_version, State.KEPT)
        }
    with transaction.atomic():
        locked_set = EvaluationSet.objects.select_for_update(of=("self",)).get(pk=evaluation_set.pk)
        # The accepted ones were compared with a version that is no longer the latest.
        if last_version is None or find_latest_version(locked_set) != last_version:
            raise Refused(_("The test set has a newer version. Check it and try again."))
        if accepted_ids <= set(last_version.paraphrases.values_list("pk", flat=True)):
            raise Refused(
                _("No paraphrases have been kept since the last version. Keep some first.")
            )
        shared_values = {name: getattr(last_version, name) for name in SHARED_COLUMNS}
        number = last_version.version + 1
        version = EvaluationSetVersion.objects.create(
            version=number, made_by=actor, **shared_values
        )
        version.paraphrases.set(accepted_ids)
        counts = {"size": version.size, "paraphrases": len(accepted_ids)}
        log(actor, "evaluation_set.version", version, **counts)
    return version
