"""A round with tries of people against a scripted target, which errs on one subject."""

from annotation.models import Example, TargetOutput
from core.accounts.services import get_annotator
from tasks.models import Round, TargetModel, TargetVersion
from tests.support.factories import UserFactory, scripted_target
from tests.support.written_tries import write_tries
from validation.models import Consensus


def write_against_target(round: Round, **options) -> TargetModel:
    """Store tries with their outputs; people confirmed all errors. options: of `write_tries`."""
    target = scripted_target(round, name="weak")
    version = TargetVersion.objects.create(target=target, digest="f" * 64)
    context = round.contexts.first()
    tries = write_tries(3, **{"weak_subject": "food", "weak_rate": 0.7, **options})
    authors = {one.author: get_annotator(UserFactory()) for one in tries}
    examples = Example.objects.bulk_create(
        Example(
            round=round,
            context=context,
            annotator=authors[one.author],
            inputs={"text": " ".join(sorted(one.words)), "label": one.values["label"]},
            digest=f"try-{one.key}",
            outcome="fooled" if one.is_error else "not_fooled",
        )
        for one in tries
    )
    TargetOutput.objects.bulk_create(
        TargetOutput(
            example=example,
            target=target,
            version=version,
            output={"label": "neutral"},
            seconds=0.1,
            fooled=one.is_error,
        )
        for example, one in zip(examples, tries, strict=True)
    )
    Consensus.objects.bulk_create(
        Consensus(
            example=example,
            round=round,
            state="decided",
            label=example.inputs["label"],
            votes=3,
            still_needed=0,
            is_verified=True,
            is_validated_error=True,
        )
        for example in examples
        if example.outcome == "fooled"
    )
    return target
