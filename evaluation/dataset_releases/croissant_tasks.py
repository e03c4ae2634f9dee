"""Describe a test set as a problem to solve, in MLCommons' vocabulary Croissant Tasks.

A `TaskProblem` names the input (rows of a dataset) and the parts of a solution (a model and
its answers). Source of the vocabulary: https://github.com/mlcommons/croissant, `tasks/`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.config.schema import ERROR_METRICS, TaskConfig

PROBLEM_FILE = "croissant_task.json"
"""The file of a release that describes it as a problem."""
CONTEXT = {
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def build_problem(
    config: TaskConfig, *, problem_id: str, name: str, input_dataset: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the JSON-LD of a problem: answer the rows of a dataset.

    problem_id: an IRI, or a fragment such as `#task` in a file of its own. input_dataset: the
    dataset with the rows, as JSON-LD.
    """
    # What a model reads; it does not see who wrote or judged a row.
    fields = ", ".join(config.model_fields)
    return {
        "@context": CONTEXT,
        "@type": "cr:TaskProblem",
        "@id": problem_id,
        "name": name,
        "description": config.summary or config.name,
        "inLanguage": config.language,
        "cr:input": input_dataset,
        "cr:output": {
            "@type": "cr:OutputSpec",
            "description": f"One line for each row, with {config.answer_field} in `output`.",
            "cr:schema": _describe_answers(problem_id),
        },
        "cr:implementation": {
            "@type": "cr:ImplementationSpec",
            "description": f"A model that reads {fields} and returns {config.answer_field}.",
        },
        "cr:evaluation": {
            "@type": "cr:EvaluationSpec",
            "cr:expectedMetric": describe_metrics(config.metrics.computed_names),
        },
    }


def _describe_answers(problem_id: str) -> dict[str, Any]:
    """Return the record set of a file of answers. Its fields are those of uploaded predictions."""
    base = problem_id if problem_id.startswith("#") else f"{problem_id}/"
    record_set_id = f"{base}answers"
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{record_set_id}/{name}",
            "name": name,
            "description": description,
            "cr:dataType": {"@id": "https://schema.org/Text"},
        }
        for name, description in (
            ("id", "The uid of the row that is answered."),
            ("output", "The answer as a JSON object."),
        )
    ]
    return {"@type": "cr:RecordSet", "@id": record_set_id, "name": "answers", "cr:field": fields}


def describe_metrics(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the specification of each metric, the main one first."""
    return [
        {"@type": "cr:MetricSpec", "name": name, "cr:lowerIsBetter": name in ERROR_METRICS}
        for name in names
    ]
