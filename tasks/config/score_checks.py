"""Check whether the settings about scores fit together."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tasks.config.components import FIELD_TYPES
from tasks.config.parsing import Finding, Loc, locate_inside, suggest_nearest
from tasks.config.schema import (
    ERROR_METRICS,
    HARMLESS_METRICS,
    LLM_JUDGE,
    SECRET_METRICS,
    TaskConfig,
    may_be_unscored,
)


def find_duplicate(values: Iterable[str]) -> str | None:
    """Return the first value that occurs more than once, or None."""
    counts = Counter(values)
    return next((value for value, count in counts.items() if count > 1), None)


def find_repetitions(
    location: Loc, values: Iterable[str], message: str, fix: str
) -> Iterator[Finding]:
    """Yield a finding if a value occurs twice.

    message: a text in which `{}` stands for the value.
    """
    value = find_duplicate(values)
    if value is not None:
        yield Finding(location, message.replace("{}", value), fix)


def find_score_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in the settings of metrics, weights and slices."""
    metrics, weights = config.metrics, config.leaderboard.weights
    metric_names = (metrics.main, *metrics.also)
    yield from find_repetitions(
        ("metrics", "also"), metric_names, '"{}" is there twice', "name each metric once"
    )
    location: Loc = ("metrics", "deltas")
    yield from find_repetitions(
        location, metrics.deltas, "a delta is named twice", "name each once"
    )
    for key in weights:
        if key not in metrics.names:
            location = ("leaderboard", "weights", key)
            yield Finding(
                location,
                f'"{key}" is not a metric of this task',
                suggest_nearest(key, metrics.names),
            )
    if weights and not any(weights[name] for name in weights if not may_be_unscored(name)):
        unscored_names = " and ".join(name for name in weights if weights[name])
        message = f"all weights are 0, {unscored_names} apart, which may lose its own"
        message = message if unscored_names else "all weights are 0"
        yield Finding(("leaderboard", "weights"), message, "give at least one weight above 0")
    yield from _find_main_metric_errors(config)
    # Metrics that need a judge, or files of the owners, have rules of their own.
    yield from _find_judge_metric_errors(config)
    fields = ["tag", "language"]
    for component in config.context + config.input:
        if component.name not in config.media_fields:
            fields.append(component.name)
    if config.challenges:
        fields.append("challenge")
    for index, name in enumerate(config.slices):
        # No two pictures are equal, so each would be a slice of one example.
        if name in config.media_fields:
            fix = f"use one of: {', '.join(fields)}"
            yield Finding(("slices", index), f"{name} is a file, and no two need be equal", fix)
        elif name not in fields:
            yield Finding(("slices", index), f'"{name}" is no field', suggest_nearest(name, fields))
    yield from find_repetitions(
        ("slices",), config.slices, "a slice is named twice", "name each once"
    )


def find_group_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in the slices whose values are groups of people."""
    group_names, location = config.metrics.groups, ("metrics", "groups")
    if group_names and "fairness" not in config.metrics.deltas:
        fix = "add fairness to deltas, or remove groups"
        yield Finding(location, "only fairness compares groups", fix)
    for index, name in enumerate(group_names):
        if name not in config.slices:
            message = f'"{name}" is none of the slices'
            fix = suggest_nearest(name, config.slices) if config.slices else f"add {name} to slices"
            yield Finding(locate_inside(location, index), message, fix)
    yield from find_repetitions(location, group_names, "a group is named twice", "name each once")


def find_group_term_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in the lists of terms for groups of people."""
    term_lists, location = config.metrics.group_terms, ("metrics", "group_terms")
    for index, terms in enumerate(term_lists):
        if len(terms) < 2:
            message = "no term can become another one"
            yield Finding(locate_inside(location, index), message, "name at least two terms")
    all_terms = []
    for terms in term_lists:
        for term in terms:
            all_terms.append(" ".join(term.lower().split()))
    yield from find_repetitions(location, all_terms, '"{}" is there twice', "name it once")


def _find_main_metric_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding if the main metric counts errors.

    Scores, groups and perturbed data are compared by the main metric, so higher values must be
    better. Also, a score needs the value for random answers, and error rates have none.
    """
    main = config.metrics.main
    if main in ERROR_METRICS:
        message = f"{main} counts errors, so less is better; of the main metric more must be"
        fix = "name another metric as main, and this one in also"
        yield Finding(("metrics", "main"), message, fix)


def _find_judge_metric_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in settings of metrics that use an LLM judge or the owners' files."""
    metrics = config.metrics
    if may_be_unscored(metrics.main):
        fix = "name another metric as main, and this one in also"
        message = f"{metrics.main} ranks only once a version of it is approved"
        if metrics.main == LLM_JUDGE:
            message = f"{LLM_JUDGE} ranks only as long as its judge is calibrated"
        yield Finding(("metrics", "main"), message, fix)
    if LLM_JUDGE not in metrics.also:
        # As the main metric it does have a judge, so that one finding says it all.
        if metrics.judge and metrics.main != LLM_JUDGE:
            fix = f"add {LLM_JUDGE} to also, or remove judge"
            yield Finding(("metrics", "judge"), "no metric is of a judge", fix)
        return
    location: Loc = ("metrics", "also", metrics.also.index(LLM_JUDGE))
    if not config.has_free_answers:
        message = (
            f"{LLM_JUDGE} is for free-text answers, and models answer with {config.answer_field}"
        )
        yield Finding(location, message, "remove it, or answer with a field of type text")
    elif not metrics.judge:
        fix = "add judge: NAME, as on the page of the task's LLM judges"
        yield Finding(location, f"nothing says whose verdicts {LLM_JUDGE} counts", fix)


def find_unsuitable_metrics(config: TaskConfig) -> Iterator[Finding]:
    """Yield a finding for each metric that cannot score the task's answers."""
    answer = config.get_component(config.answer_field)
    own_metrics = answer.kind.list_metrics(answer)
    special_metrics: set[str] = set()
    for kind in FIELD_TYPES.values():
        special_metrics.update(kind.own_metrics)
    alternatives = "one for any answer, such as accuracy"
    if answer.kind.get_verdict_rule(answer):
        alternatives = ", ".join(own_metrics)
    located_names: list[tuple[Loc, str]] = [(("metrics", "main"), config.metrics.main)]
    for index, name in enumerate(config.metrics.also):
        located_names.append((("metrics", "also", index), name))
    for location, name in located_names:
        if may_be_unscored(name):
            continue
        # An attack has no right answer, so only metrics of secrets can score it, and nothing else.
        if (name in SECRET_METRICS) != (config.verdict.type == "secret"):
            yield _build_secret_finding(location, name)
            continue
        if (
            name in HARMLESS_METRICS
            and config.verdict.type == "secret"
            and not config.verdict.harmless
        ):
            message = f"{name} is of harmless questions, and there are none"
            yield Finding(location, message, "add harmless to the verdict")
        is_fitting = (
            name in own_metrics
            if answer.kind.get_verdict_rule(answer)
            else name in own_metrics or name not in special_metrics
        )
        if not is_fitting:
            message = f"{name} cannot score {answer.name}, a field of type {answer.type}"
            yield Finding(location, message, f"use {alternatives}")


def _build_secret_finding(location: Loc, name: str) -> Finding:
    """Return the finding for a secret metric without the verdict `secret`, or the reverse."""
    if name in SECRET_METRICS:
        fix = "use another metric, or the verdict secret"
        return Finding(location, f"{name} is of a secret, and the verdict compares none", fix)
    message = f"{name} compares with a right answer; of an attack each that keeps the secret is"
    return Finding(location, message, f"use one of: {', '.join(SECRET_METRICS)}")
