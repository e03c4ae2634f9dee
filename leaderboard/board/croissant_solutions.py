"""A board in MLCommons' vocabulary Croissant Tasks: sets are problems, models are solutions."""

from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.dataset_releases.croissant_tasks import CONTEXT, build_problem
from leaderboard.board.every_eval_ever import UNKNOWN_MODEL, ModelFacts, make_slug, name_models
from leaderboard.board.exports import UNITS, Table
from tasks.config.schema import TaskConfig

HUB_URL = "https://huggingface.co"


def name_set(board_set: Mapping[str, Any]) -> str:
    """Return the name of a set with its version, as in ids and file names."""
    return f"{make_slug(board_set['name'])}-v{board_set['version']}"


def build_problems(
    config: TaskConfig, table: Table, address: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the problem of each set of a board. address: the board's URL."""
    for board_set in table["sets"]:
        name = name_set(board_set)
        given = {
            "@type": "Dataset",
            "name": f"{table['task']['code']}/{board_set['name']}",
            "version": str(board_set["version"]),
            "sha256": board_set["sha256"],
            # The rows of a sealed set are never downloaded.
            "isAccessibleForFree": not board_set.get("is_sealed"),
        }
        title = f"{table['task']['name']}, {board_set['name']}"
        yield (
            name,
            build_problem(config, problem_id=f"{address}#{name}", name=title, input_dataset=given),
        )


def build_solutions(
    table: Table, address: str, facts: Mapping[str, ModelFacts]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each model with a result, and its solutions: one for each set.

    facts: further facts about models, by their ids in the table.
    """
    metrics = {metric["name"]: metric for metric in table["metrics"]}
    names = name_models(table, facts)
    for row in table["rows"]:
        # A model solves each set's problem on its own.
        model_facts = facts.get(row["id"], UNKNOWN_MODEL)
        name_of_model = names[row["id"]]
        solutions = []
        for board_set in table["sets"]:
            cells = row.get("sets", {}).get(board_set["name"], {})
            results = [_build_result(metrics[name], cell) for name, cell in cells.items()]
            measured_results = list(filter(None, results))
            if measured_results:
                name = name_set(board_set)
                solution_id = f"{address}#{name}/{row['id']}"
                problem_id = f"{address}#{name}"
                model = _describe_model(row, model_facts, name_of_model.id)
                solutions.append(_build_solution(solution_id, problem_id, model, measured_results))
        if solutions:
            yield name_of_model.path, {"@context": CONTEXT, "@graph": solutions}


def _describe_model(
    row: Mapping[str, Any], model_facts: ModelFacts, model_id: str
) -> dict[str, Any]:
    model = {"@type": "SoftwareApplication", "name": row["model"], "identifier": row["id"]}
    # Only if the model's id is one on the Hub, not built from the names of its team and itself.
    if model_facts.repository:
        model["url"] = f"{HUB_URL}/{model_id}"
    return model


def _build_solution(
    solution_id: str, problem_id: str, model: dict[str, Any], results: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "@type": "cr:TaskSolution",
        "@id": solution_id,
        "name": f"{model['name']} on {problem_id.rpartition('#')[2]}",
        "isBasedOn": {"@id": problem_id},
        "cr:implementation": model,
        "cr:evaluation": {
            "@type": "cr:EvaluationTask",
            "cr:evaluatedSolution": {"@id": solution_id},
            "cr:evaluationResults": results,
        },
    }


def _build_result(
    metric: Mapping[str, Any], cell: Mapping[str, float | None]
) -> dict[str, Any] | None:
    """Return a metric's value with its 95% interval, or None if the metric was not measured."""
    if cell["value"] is None:
        return None
    result: dict[str, Any] = {
        "@type": "cr:EvaluationResult",
        "cr:metric": metric["name"],
        "cr:value": _make_decimal(cell["value"]),
        "cr:lowerIsBetter": not metric.get("higher_is_better", True),
        "unitText": UNITS.get(metric["name"], "%"),
    }
    low, high = cell.get("low"), cell.get("high")
    if low is not None and high is not None:
        result["minValue"], result["maxValue"] = _make_decimal(low), _make_decimal(high)
        result["description"] = "minValue and maxValue are a 95% bootstrap interval."
    return result


def _make_decimal(value: float) -> dict[str, str]:
    """Return a number as JSON-LD's decimal: a plain one with a fraction would become a double."""
    return {"@type": "xsd:decimal", "@value": f"{value:f}"}
