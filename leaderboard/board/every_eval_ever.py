"""A board as records of Every Eval Ever, schema 0.3.0, for other leaderboards and model cards.

One record holds all of a model's results on a board or a snapshot. Source of the schema:
https://github.com/evaleval/every_eval_ever (`eval.schema.json`).
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from core.versions import get_version
from leaderboard.board.exports import UNITS, Table

SCHEMA_VERSION = "0.3.0"
NORMAL_QUANTILE = 1.96
"""The number of standard errors in half a 95% interval."""
UNIT_NAMES = {"%": "percent", "examples/s": "examples per second", "s": "seconds"}
DYNASCORE = "dynascore"
UNBOUNDED = "Infinity"
"""How the schema writes that scores have no upper end. It requires both ends of every range."""
RANGES: Mapping[str, tuple[float, float | str]] = {
    **dict.fromkeys(("throughput", "latency_p95", "memory", "memory_mean"), (0, UNBOUNDED)),
    **dict.fromkeys(("wer", "cer"), (0, UNBOUNDED)),  # inserted words are errors, too
    **dict.fromkeys(("matthews_correlation", "robustness_drop", "fairness_gap"), (-100, 100)),
}
"""The lowest and highest possible value of the metrics that are not shares from 0 to 100."""
DYNASCORE_RANGES = {"anchored": (0, 100)}
"""The range of the score by the board's mode. Other formulas depend on rates without limits."""


class ModelFacts(NamedTuple):
    """Facts about a model that a board's table lacks. repository: its id on a hub; "" for none."""

    repository: str = ""
    developer: str = ""
    is_served_elsewhere: bool = False


UNKNOWN_MODEL = ModelFacts()


class ModelName(NamedTuple):
    """A model's id for others, and the same as the path of its files, which no other model has.

    Two submissions may be of one model of a hub, so that they share its id.
    """

    id: str
    path: str


def write_records(table: Table, address: str) -> str:
    """Return a board as JSON lines, one record for each model. address: the board's URL."""
    return "".join(
        json.dumps(record, ensure_ascii=False) + "\n" for record in build_records(table, address)
    )


def build_records(
    table: Table, address: str, facts: Mapping[str, ModelFacts] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the record of each model with a result, in the board's order.

    facts: further facts about models, by their ids in the table.
    """
    names = name_models(table, facts or {})
    for row in table["rows"]:
        model_facts = (facts or {}).get(row["id"], UNKNOWN_MODEL)
        record = _build_record(table, row, address, model_facts, names[row["id"]])
        # The schema forbids empty lists, and a model without results is of no use.
        if record["evaluation_results"]:
            yield record


def _build_record(
    table: Table, row: Mapping[str, Any], address: str, model_facts: ModelFacts, name: ModelName
) -> dict[str, Any]:
    # The day of the table, so that the same board always gives the same record.
    taken_at = datetime.fromisoformat(table["date"]).replace(tzinfo=UTC)
    evaluation_id = f"dynabench-{table['task']['code']}/{name.path}/{int(taken_at.timestamp())}"
    metrics = {metric["name"]: metric for metric in table["metrics"]}
    results = []
    for board_set in table["sets"]:
        cells = row.get("sets", {}).get(board_set["name"], {})
        for metric, cell in cells.items():
            if cell["value"] is not None:
                results.append(
                    _build_result(table, evaluation_id, board_set, metrics[metric], cell, address)
                )
    if row["dynascore"]["value"] is not None:
        results.append(_build_dynascore(table, evaluation_id, row["dynascore"], address))
    source: dict[str, Any] = {
        "source_name": f"Dynabench: {table['task']['name']}",
        "source_type": "evaluation_run",
        "source_organization_name": "Dynabench",
        "evaluator_relationship": "third_party",
    }
    if address:
        source["source_organization_url"] = address
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "retrieved_timestamp": str(int(taken_at.timestamp())),
        "source_metadata": source,
        "eval_library": {"name": "dynabench", "version": get_version()},
        "model_info": _describe_model(row, name.id, model_facts),
        "evaluation_results": results,
    }


def name_models(table: Table, facts: Mapping[str, ModelFacts]) -> dict[str, ModelName]:
    """Return the name of each model of a board by its id there.

    Names that would be equal get the beginning of that id, such as those of anonymous models.

    >>> rows = [{"id": f"{n}23456789", "model": "M", "owner": "Ann"} for n in (1, 7)]
    >>> [name.path for name in name_models({"rows": rows}, {}).values()]
    ['ann/m-12345678', 'ann/m-72345678']
    """
    ids = {}
    for row in table["rows"]:
        ids[row["id"]] = _name_model(row, facts.get(row["id"], UNKNOWN_MODEL))
    counts, names = Counter(ids.values()), {}
    for row_id, model_id in ids.items():
        path = model_id if counts[model_id] == 1 else f"{model_id}-{row_id[:8]}"
        is_of_hub = facts.get(row_id, UNKNOWN_MODEL).repository
        # The id of a model on the Hub leads to the model, so it stays.
        names[row_id] = ModelName(model_id if is_of_hub else path, path)
    return names


def _name_model(row: Mapping[str, Any], model_facts: ModelFacts) -> str:
    """Return the model's id on a hub, or an id `organisation/name` from its team or owner and name.

    >>> _name_model({"model": "My model 2", "owner": "", "team": "Lab B"}, UNKNOWN_MODEL)
    'lab-b/my-model-2'
    """
    if model_facts.repository:
        return model_facts.repository
    organisation = row.get("team") or row["owner"] or "dynabench"
    return f"{make_slug(organisation)}/{make_slug(row['model'])}"


def make_slug(text: str) -> str:
    """Return the text using only characters that ids and file names may have; never empty.

    >>> make_slug("Änderung / Ä")
    'änderung-ä'
    """
    return re.sub(r"[^\w.]+", "-", text.lower()).strip("-.") or "unnamed"


def _describe_model(
    row: Mapping[str, Any], model_id: str, model_facts: ModelFacts
) -> dict[str, Any]:
    deployment = "externally_managed" if model_facts.is_served_elsewhere else "self_deployed"
    model = {
        "name": row["model"],
        "id": model_id,
        "additional_details": {
            "deployment_type": deployment,
            "model_availability": "open_weights" if model_facts.repository else "unknown",
            "dynabench_id": row["id"],
        },
    }
    if developer := model_facts.developer or row.get("team") or row["owner"]:
        model["developer"] = developer
    if row["in_the_loop"]:
        # Such a model is at a disadvantage, and readers of its numbers must know that.
        model["additional_details"]["written_against_it"] = ", ".join(row["in_the_loop"])
    return model


def _build_result(
    table: Table,
    evaluation_id: str,
    board_set: Mapping[str, Any],
    metric: Mapping[str, Any],
    cell: Mapping[str, float | None],
    address: str,
) -> dict[str, Any]:
    set_name, name = f"{board_set['name']}-v{board_set['version']}", metric["name"]
    unit = UNITS.get(name, "%")
    least, most = RANGES.get(name, (0, 100))
    config: dict[str, Any] = {
        "metric_id": f"dynabench.{name}",
        "metric_name": name,
        "metric_kind": name,
        "metric_unit": UNIT_NAMES.get(unit, unit),
        "lower_is_better": not metric.get("higher_is_better", True),
        "score_type": "continuous",
        "min_score": least,
        "max_score": most,
        "additional_details": {"version": str(metric.get("version", 1))},
    }
    source: dict[str, Any] = {"dataset_name": f"{table['task']['code']}/{board_set['name']}"}
    source |= _describe_source(board_set, address)
    return {
        "evaluation_result_id": name_result(evaluation_id, set_name, name),
        "evaluation_name": f"{table['task']['code']}/{set_name}",
        "source_data": source,
        "metric_config": config,
        "score_details": _describe_score(cell, board_set["examples"], table["resamples"]),
    }


def name_result(evaluation_id: str, set_name: str, metric: str) -> str:
    """Return the id of a result, to which the rows of single examples refer."""
    return f"{evaluation_id}#{set_name}#{metric}"


def _describe_source(board_set: Mapping[str, Any], address: str) -> dict[str, Any]:
    details = {
        "version": str(board_set["version"]),
        "sha256": board_set["sha256"],
        "access": "sealed" if board_set.get("is_sealed") else "open",
    }
    # The rows of a sealed set cannot be found by a link.
    if not address or board_set.get("is_sealed"):
        return {"source_type": "other", "additional_details": details}
    return {"source_type": "url", "url": [address], "additional_details": details}


def _describe_score(
    cell: Mapping[str, float | None], examples: int, resamples: int
) -> dict[str, Any]:
    """Return a value with its 95% bootstrap interval and the standard error that this implies."""
    score: dict[str, Any] = {"score": cell["value"]}
    low, high = cell.get("low"), cell.get("high")
    # A value from one measurement, such as memory, has no interval.
    if low is None or high is None:
        return score
    error = (high - low) / (2 * NORMAL_QUANTILE)
    score["uncertainty"] = {
        "standard_error": {"value": round(error, 6), "method": "bootstrap"},
        "confidence_interval": {
            "lower": low,
            "upper": high,
            "confidence_level": 0.95,
            "method": "bootstrap",
        },
        "num_samples": examples,
        "num_bootstrap_samples": resamples,
    }
    return score


def _build_dynascore(
    table: Table, evaluation_id: str, cell: Mapping[str, float | None], address: str
) -> dict[str, Any]:
    """Return the score that ranks the board, with the weights on which it depends."""
    # Other weights give other scores, so the number alone would mislead.
    weights = json.dumps(table["weights"], sort_keys=True)
    least, most = DYNASCORE_RANGES.get(table.get("mode", ""), (f"-{UNBOUNDED}", UNBOUNDED))
    examples = sum(each["examples"] for each in table["sets"] if each.get("counts", True))
    source: dict[str, Any] = {"dataset_name": table["task"]["code"], "source_type": "other"}
    if address:
        source |= {"source_type": "url", "url": [address]}
    return {
        "evaluation_result_id": name_result(evaluation_id, "board", DYNASCORE),
        "evaluation_name": f"{table['task']['code']}/board",
        "source_data": source,
        "metric_config": {
            "metric_id": "dynabench.dynascore",
            "metric_name": "Dynascore",
            "metric_kind": DYNASCORE,
            "metric_unit": "points",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": least,
            "max_score": most,
            "additional_details": {"weights": weights, "formula": table.get("formula", "")},
        },
        "score_details": _describe_score(cell, examples, table["resamples"]),
    }
