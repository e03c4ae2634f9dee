"""Advice on valid configurations: settings that are possible but rarely intended."""

from collections.abc import Iterator

from tasks.config.parsing import Finding
from tasks.config.schema import TaskConfig


def find_advice(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each setting of a valid configuration that is probably not intended."""
    # An arena has no examples, limits and judges to give advice on.
    if config.kind == "arena":
        return
    if not config.instructions.strip():
        yield Finding(("instructions",), "there are no instructions", "say what people should do")
    for kind in ("good", "bad"):
        if len(getattr(config.examples, kind)) < 3:
            message = f"there are fewer than three {kind} examples"
            yield Finding(("examples", kind), message, "add some")
    for index, component in enumerate(config.input):
        if component.kind.is_text and component.max_length is None:
            message = f"{component.name} may be of any length"
            yield Finding(("input", index), message, "add max_length")
    yield from _find_untrainable_fields(config)
    metrics, is_english = config.metrics, config.language.partition("-")[0] == "en"
    if "fairness" in metrics.deltas and not (is_english or metrics.groups or metrics.group_terms):
        message = f"no change of groups is known in {config.language}, so fairness compares nothing"
        fix = "name groups or group_terms, or remove fairness"
        yield Finding(("metrics", "deltas"), message, fix)
    has_answer = config.answer_field in config.target_fields
    is_free_text = config.get_component(config.answer_field).kind.is_text
    needs_correct_answer = is_free_text and not has_answer and config.verdict.type != "secret"
    if needs_correct_answer and not config.validation.corrections:
        message = "where the model is wrong nobody says what is right, so no set holds it"
        yield Finding(("validation",), message, "write `corrections: true`")
    # Only judged examples tell how often the verdict rule is wrong.
    if config.validation.judge_not_fooled == 0:
        location = ("validation", "judge_not_fooled")
        message = "nobody judges examples that the model got right, so its true errors stay unknown"
        yield Finding(location, message, "use a share such as 0.2")


def _find_untrainable_fields(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each field that models read and that is neither a text nor a file.

    Models trained here cannot read such fields. Applies only to tasks whose answer is a label or a
    span.
    """
    if config.get_component(config.answer_field).type not in ("multiclass", "span"):
        return
    for section in ("context", "input"):
        for index, component in enumerate(getattr(config, section)):
            is_not_text = not (component.kind.is_text or component.is_media)
            if is_not_text and component.name in config.model_fields:
                message = f"no model can be trained here while it reads {component.name}, no text"
                fix = "use the tag of a context for it, or ask for it under metadata"
                yield Finding((section, index), message, fix)
