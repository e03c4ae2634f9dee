"""Word saliency: how a target's answer changes without each word, measured once and cached."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from annotation.attempts.live_targets import (
    build_live_target,
    build_model_inputs,
    submit_to_pool,
    wait_for_answers,
)
from annotation.models import Example, TargetOutput
from annotation.refusals import CapReached
from core.web.throttles import is_used_up
from tasks.targets.connect import get_endpoint
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction

MAX_VARIANTS = 20  # a longer text loses several words at once
# Kept long, because each answer costs the target a call with all variants.
CACHE_SECONDS = 7 * 24 * 3600

# Examples come first: saliency takes a quarter of the pool at most, and never waits for a place.
_slots = threading.BoundedSemaphore(max(1, settings.LIVE_CALLS // 4))


@dataclass(frozen=True)
class WordWeight:
    """A part of the text with its saliency.

    drop: by how much the target's probability falls without the part. weight: from 0 to 3, relative
    to the largest drop.
    """

    text: str
    drop: float
    weight: int


@dataclass
class _VariantBatch:
    """An endpoint that answers all variants of a text in one call of the pool.

    predictions: the answers, once the call has ended.
    """

    endpoint: Endpoint
    variants: Sequence[Mapping[str, Any]]
    predictions: Sequence[Prediction] = field(default_factory=list)

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> Sequence[Prediction]:
        self.predictions = self.endpoint.predict(self.variants, deadline_seconds=deadline_seconds)
        return self.predictions


def measure_saliency(example: Example, text_field: str) -> list[WordWeight]:
    """Return, for each word, how far the first target's probability falls without it.

    The words of a long text are measured in groups. The result is cached for a week. Empty if the
    target reports no probabilities.

    Method: Li, Monroe and Jurafsky 2016, "Understanding Neural Networks through Representation
    Erasure". Raises EndpointError, CapReached.
    """
    output = example.target_outputs.select_related("target__task").first()
    pieces = _split_text(str(example.inputs.get(text_field, "")))
    if output is None or not output.prob or not pieces:
        return []
    answer = str(output.output.get(example.round.task.config.answer_field))
    if answer not in output.prob:
        return []
    key = f"saliency:{output.pk}"
    probabilities = cache.get(key)
    if probabilities is None:
        if is_used_up("saliency", example.annotator_id):
            raise CapReached(_("You've reached the hourly limit. Try again in an hour."))
        inputs = build_model_inputs(example.round, example.context.fields, example.inputs)
        reduced_texts = (" ".join(pieces[:i] + pieces[i + 1 :]) for i in range(len(pieces)))
        predictions = _ask_variants(
            output, [{**inputs, text_field: text} for text in reduced_texts]
        )
        probabilities = [(prediction.prob or {}).get(answer, 0.0) for prediction in predictions]
        cache.set(key, probabilities, CACHE_SECONDS)
    drops = [output.prob[answer] - probability for probability in probabilities]
    largest_drop = max(drops)
    return [
        WordWeight(piece, drop, round(3 * max(drop, 0.0) / largest_drop) if largest_drop > 0 else 0)
        for piece, drop in zip(pieces, drops, strict=True)
    ]


def _split_text(text: str) -> list[str]:
    words = text.split()
    size = ceil(len(words) / MAX_VARIANTS) or 1
    return [" ".join(words[i : i + size]) for i in range(0, len(words), size)]


def _ask_variants(
    output: TargetOutput, variants: Sequence[Mapping[str, Any]]
) -> Sequence[Prediction]:
    """Return the target's answers to all variants, within a page's usual wait.

    Raises EndpointError if too many are in progress or the target is too slow.
    """
    batch = _VariantBatch(get_endpoint(output.target), variants)
    if not _slots.acquire(blocking=False):
        raise EndpointError("Others ask the same of their texts.", reason="busy", retry_after=2.0)
    try:
        # A breaker of its own, so that failures here do not stop people from writing.
        name, breaker = output.target.name, f"saliency:{output.target_id}"
        target = build_live_target(name, batch, breaker)  # type: ignore[arg-type]
        pending_answers = submit_to_pool([target], variants[0], settings.LIVE_WAIT_SECONDS)
    except BaseException:
        _slots.release()
        raise
    pending_answers.add_done_callback(lambda _done: _slots.release())
    if not wait_for_answers(pending_answers):
        raise EndpointError("The target took too long.", reason="slow")
    pending_answers.result()
    return batch.predictions
