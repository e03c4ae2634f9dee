"""Whether what a configuration says of scores fits together."""

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


def check_unique(at: Loc, values: Iterable[str], message: str, fix: str) -> Iterator[Finding]:
    """Yield a finding if a value occurs twice. The value replaces `{}` in the message."""
    value = find_duplicate(values)
    if value is not None:
        yield Finding(at, message.replace("{}", value), fix)


def check_scores(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in metrics, weights and slices."""
    metrics, weights = config.metrics, config.leaderboard.weights
    named = (metrics.main, *metrics.also)
    yield from check_unique(
        ("metrics", "also"), named, '"{}" is there twice', "name each metric once"
    )
    at: Loc = ("metrics", "deltas")
    yield from check_unique(at, metrics.deltas, "a delta is named twice", "name each once")
    for key in weights:
        if key not in metrics.names:
            at = ("leaderboard", "weights", key)
            yield Finding(
                at, f'"{key}" is not a metric of this task', suggest_nearest(key, metrics.names)
            )
    if weights and not any(weights[name] for name in weights if not may_be_unscored(name)):
        others = " and ".join(name for name in weights if weights[name])
        message = f"all weights are 0, {others} apart, which may lose its own"
        message = message if others else "all weights are 0"
        yield Finding(("leaderboard", "weights"), message, "give at least one weight above 0")
    yield from _main_of_errors(config)
    # Metrics that need a judge, or files of the owners, have rules of their own.
    yield from _check_judge_metrics(config)
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
    yield from check_unique(("slices",), config.slices, "a slice is named twice", "name each once")


def check_groups(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in slices that are groups of people."""
    group_names, at = config.metrics.groups, ("metrics", "groups")
    if group_names and "fairness" not in config.metrics.deltas:
        fix = "add fairness to deltas, or remove groups"
        yield Finding(at, "only fairness compares groups", fix)
    for index, name in enumerate(group_names):
        if name not in config.slices:
            message = f'"{name}" is none of the slices'
            fix = suggest_nearest(name, config.slices) if config.slices else f"add {name} to slices"
            yield Finding(locate_inside(at, index), message, fix)
    yield from check_unique(at, group_names, "a group is named twice", "name each once")


def check_group_terms(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in terms for groups of people."""
    lists, at = config.metrics.group_terms, ("metrics", "group_terms")
    for index, terms in enumerate(lists):
        if len(terms) < 2:
            message = "no term can become another one"
            yield Finding(locate_inside(at, index), message, "name at least two terms")
    all_terms = []
    for terms in lists:
        for term in terms:
            all_terms.append(" ".join(term.lower().split()))
    yield from check_unique(at, all_terms, '"{}" is there twice', "name it once")


def _main_of_errors(config: TaskConfig) -> Iterator[Finding]:
    """Yield a main metric that counts errors.

    Scores, groups and perturbed data are compared by a main metric of which more is better, and
    answers by chance have no rate of errors at which a score could start.
    """
    main = config.metrics.main
    if main in ERROR_METRICS:
        message = f"{main} counts errors, so less is better; of the main metric more must be"
        fix = "name another metric as main, and this one in also"
        yield Finding(("metrics", "main"), message, fix)


def _check_judge_metrics(config: TaskConfig) -> Iterator[Finding]:
    """Yield the errors in metrics that use an LLM judge or the owners' files."""
    metrics = config.metrics
    if may_be_unscored(metrics.main):
        fix = "name another metric as main, and this one in also"
        message = f"{metrics.main} ranks only once a version of it is approved"
        if metrics.main == LLM_JUDGE:
            message = f"{LLM_JUDGE} ranks only as long as its judge is calibrated"
        yield Finding(("metrics", "main"), message, fix)
    if LLM_JUDGE not in metrics.also:
        if metrics.judge:
            fix = f"add {LLM_JUDGE} to also, or remove judge"
            yield Finding(("metrics", "judge"), "no metric is of a judge", fix)
        return
    at: Loc = ("metrics", "also", metrics.also.index(LLM_JUDGE))
    if not config.answers_freely:
        message = f"{LLM_JUDGE} is of free answers, and models answer with {config.answer_field}"
        yield Finding(at, message, "remove it, or answer with a field of type text")
    elif not metrics.judge:
        fix = "add judge: NAME, as on the page of the task's LLM judges"
        yield Finding(at, f"nothing says whose verdicts {LLM_JUDGE} counts", fix)


def find_unfit_metrics(config: TaskConfig) -> Iterator[Finding]:
    """Yield the metrics that cannot score the task's answers."""
    answer = config.component(config.answer_field)
    own_metrics = answer.kind.metrics(answer)
    special_metrics: set[str] = set()
    for kind in FIELD_TYPES.values():
        special_metrics.update(kind.own_metrics)
    alternatives = "one for any answer, such as accuracy"
    if answer.kind.rule(answer):
        alternatives = ", ".join(own_metrics)
    places: list[tuple[Loc, str]] = [(("metrics", "main"), config.metrics.main)]
    for index, name in enumerate(config.metrics.also):
        places.append((("metrics", "also", index), name))
    for at, name in places:
        if may_be_unscored(name):
            continue
        # An attack has no right answer, so only metrics of secrets can score it, and nothing else.
        if (name in SECRET_METRICS) != (config.verdict.type == "secret"):
            yield _build_secret_finding(at, name)
            continue
        if (
            name in HARMLESS_METRICS
            and config.verdict.type == "secret"
            and not config.verdict.harmless
        ):
            message = f"{name} is of harmless questions, and there are none"
            yield Finding(at, message, "add harmless to the verdict")
        is_fitting = (
            name in own_metrics
            if answer.kind.rule(answer)
            else name in own_metrics or name not in special_metrics
        )
        if not is_fitting:
            message = f"{name} cannot score {answer.name}, a field of type {answer.type}"
            yield Finding(at, message, f"use {alternatives}")


def _build_secret_finding(at: Loc, name: str) -> Finding:
    """Return the finding for a secret metric without the verdict `secret`, or vice versa."""
    if name in SECRET_METRICS:
        fix = "use another metric, or the verdict secret"
        return Finding(at, f"{name} is of a secret, and the verdict compares none", fix)
    message = f"{name} compares with a right answer; of an attack each that keeps the secret is"
    return Finding(at, message, f"use one of: {', '.join(SECRET_METRICS)}")
