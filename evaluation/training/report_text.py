"""Write the report of a training run as lines of text."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

SHOWN_EXAMPLES = 5


def iterate_report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a report: training rows, epochs, comparisons and corrected answers."""
    yield f"{report['task']} ({report['kind']}), from {report['base']}, seed {report['seed']}"
    for source in report["sources"]:
        usage = "tested on only" if source["weight"] is None else f"weight {source['weight']:g}"
        sizes = ", ".join(f"{source[split]} {split}" for split in ("train", "dev", "test"))
        if source["left_out"]:
            sizes += f", {source['left_out']} left out"
        yield f"  {source['dataset'] or source['name']}: {sizes} ({usage})"
    for number, epoch in enumerate(report["training"]["curve"], start=1):
        scores = ", ".join(f"{name} {value:.3f}" for name, value in epoch.items())
        kept_note = "  (kept)" if number == report["training"]["best_epoch"] else ""
        yield f"  epoch {number}: {scores}{kept_note}"
    old_name = report["old"] or "no older model"
    missing_note = f"; no figures: {report['old_missing']}" if report["old_missing"] else ""
    metric = "token F1" if report["labels"] is None else "accuracy"
    yield f"{metric} on the tests, before ({old_name}{missing_note}) and after:"
    for test in report["tests"]:
        # Without an older model the first one is unknown.
        old_score, new_score = _format_score(test["before"]), _format_score(test["after"])
        yield f"  {test['name']}: {old_score} → {new_score}{_format_changes(test)}"
    examples = chain.from_iterable(test["examples"] for test in report["tests"])
    for example in islice(examples, SHOWN_EXAMPLES):
        texts = " | ".join(example["inputs"].values())
        yield f"  mended: {texts} → {example['after']} (was {example['before']})"
    yield f"The model is in {report['folder']}"


def _format_score(rate: Mapping[str, Any] | None) -> str:
    if rate is None:
        return "unknown"
    return f"{rate['value']:.3f} [{rate['low']:.3f}, {rate['high']:.3f}] n={rate['n']}"


def _format_changes(test: Mapping[str, Any]) -> str:
    if test["mended"] is None:
        return ""
    return f"; {test['mended']} mended, {test['broken']} broken, McNemar p {test['p']:.2g}"
