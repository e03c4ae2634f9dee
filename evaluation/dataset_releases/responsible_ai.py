"""Describe how a release was made, for Croissant: RAI 1.0 and the origin of the data (PROV).

Specification: http://mlcommons.org/croissant/RAI/1.0. MINIMAL is the set that NeurIPS required in
2026. The owner's statements come first; everything else here is counted or configured.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Avg, Count, Max, Min

from evaluation.dataset_releases.authorship import Authorship
from evaluation.dataset_releases.census import REASONS
from evaluation.dataset_releases.statements import RAI_PROPERTIES, SINGLE_TEXTS
from evaluation.models import Dataset
from tasks.models import TargetModel
from validation.models import Consensus

COLLECTION_TYPES = {
    "found": "Secondary Data Analysis",
    "crowdsourced": "Manual Human Curator",
    "machine-generated": "Software Collection",
}
"""The vocabulary's words for who wrote the texts, by those of the Hub."""

CONFORMS_TO = "http://mlcommons.org/croissant/RAI/1.0"
MINIMAL = (
    *("rai:dataLimitations", "rai:dataBiases", "rai:personalSensitiveInformation"),
    *("rai:dataUseCases", "rai:dataSocialImpact", "rai:hasSyntheticData"),
    *("prov:wasDerivedFrom", "prov:wasGeneratedBy"),
)
"""The properties that NeurIPS asks of every dataset."""
Numbers = Mapping[str, Any]


def make_rai_properties(
    dataset: Dataset,
    numbers: Numbers,
    limits: list[str],
    sources: list[tuple[str, str, str, str]],
    authorship: Authorship,
) -> dict[str, Any]:
    """Return Croissant's properties on responsible AI and on the data's origin. Six queries.

    limits: sentences about the data's limits, as the numbers show them. sources: (name, licence,
    citation, URL) of other people's data in the round.
    """
    properties = {
        **_describe_collection(dataset, numbers, authorship),
        **_describe_annotation(dataset, numbers, authorship),
        **_make_statement_properties(dataset, numbers, limits, authorship),
        "rai:hasSyntheticData": authorship.has_synthetic_rows,
        "prov:wasDerivedFrom": _list_origins(sources),
        "prov:wasGeneratedBy": _list_activities(dataset, numbers, authorship),
    }
    return {name: value for name, value in properties.items() if value not in ("", [], None)}


def _describe_collection(
    dataset: Dataset, numbers: Numbers, authorship: Authorship
) -> dict[str, Any]:
    round = dataset.round
    examples = round.examples.filter(dataset_items__dataset=dataset)
    times = examples.aggregate(first=Min("created_at"), last=Max("created_at"))
    time_frame = []
    if times["first"]:
        # Only days, because exact times could reveal who wrote a row.
        time_frame = [times["first"].date().isoformat(), times["last"].date().isoformat()]
    reasons = []
    for reason, count in numbers["reasons"].items():
        # The words that the release page uses: `author` alone says nothing to a stranger.
        reasons.append(f"{REASONS.get(reason, reason)}: {count} left out.")
    return {
        "rai:dataCollection": _describe_collection_method(dataset, authorship),
        "rai:dataCollectionType": _list_collection_types(authorship),
        "rai:dataCollectionTimeFrame": time_frame,
        "rai:dataCollectionMissingData": " ".join(reasons),
        "rai:dataImputationProtocol": "No value was imputed.",
        "rai:dataManipulationProtocol": [
            f"Splits are drawn by author with the seed {dataset.options['seed']}.",
            "A row that is withdrawn becomes a tombstone in the next version.",
        ],
    }


def _list_collection_types(authorship: Authorship) -> list[str]:
    """Return how the data was collected, in the words that the vocabulary proposes."""
    return [COLLECTION_TYPES[creator] for creator in authorship.language_creators]


def _describe_collection_method(dataset: Dataset, authorship: Authorship) -> str:
    sentences = [authorship.describe_writers()]
    is_by_people = authorship.person_rows and not (
        authorship.has_rows_to_judge or authorship.is_simulated
    )
    # Without people or models nobody looked for errors of a live model.
    if is_by_people and authorship.models:
        sentences.append(
            "A live model answered at once. People looked for examples that the model gets wrong "
            "and people get right. An example counts as fooling when it "
            f"{dataset.round.get_rule_display()}."
        )
    sentences.append(authorship.describe_judging())
    return " ".join(sentences)


def _describe_annotation(
    dataset: Dataset, numbers: Numbers, authorship: Authorship
) -> dict[str, Any]:
    report = numbers["report"]
    consensuses = Consensus.objects.filter(example__dataset_items__dataset=dataset, votes__gt=0)
    votes = consensuses.aggregate(
        rows=Count("pk"), fewest=Min("votes"), most=Max("votes"), mean=Avg("votes")
    )
    votes_sentence = "No row has a vote."
    if votes["rows"]:
        votes_sentence = (
            f"{votes['fewest']} to {votes['most']} votes on each of the {votes['rows']} judged "
            f"rows, {votes['mean']:.1f} on average."
        )
    judges = authorship.other_judges
    analysis = []
    for title, name in (
        ("Krippendorff's alpha", "krippendorff_alpha"),
        ("Share of unanimous examples", "unanimous_share"),
        ("Krippendorff's alpha of steps", "step_krippendorff_alpha"),
        ("Krippendorff's alpha of criteria", "criteria_krippendorff_alpha"),
    ):
        # The last two are missing where judges judge only whole examples.
        if (text := describe_number(report.get(name))) is not None:
            analysis.append(f"{title}: {text}.")
    # Imported rows have answers by models that this round does not have.
    answering_models = TargetModel.objects.filter(
        targetoutput__example__dataset_items__dataset=dataset
    )
    models = sorted(set(answering_models.values_list("name", flat=True)))
    return {
        "rai:dataAnnotationProtocol": (
            f"{judges} judged each example before they saw the author's label or the model's. A "
            "consensus of their votes decides. An owner's decision is marked."
        ),
        "rai:dataAnnotationPlatform": ["Dynabench"],
        "rai:dataAnnotationAnalysis": analysis,
        "rai:annotationsPerItem": votes_sentence,
        "rai:machineAnnotationTools": [f"{name} (model to fool)" for name in models],
    }


def describe_number(number: Any) -> str | None:
    """Return a number of a report as text, with its interval if it has one; None if missing."""
    if number is None:
        return None
    if isinstance(number, Mapping):
        return "{value:.3f} (95% interval {low:.3f} to {high:.3f}, n = {n})".format(**number)
    return f"{number:.3f}"


def _make_statement_properties(
    dataset: Dataset, numbers: Numbers, limits: list[str], authorship: Authorship
) -> dict[str, Any]:
    """Return the properties for the owner's statements, each followed by general statements.

    The general statements are true of every release with these numbers. limits: sentences about
    the data's limits, as the numbers show them.
    """
    config, statements = dataset.round.task.config, dataset.options.get("statements") or {}
    warning = config.content_warning
    harms = f" It contains {', '.join(warning.harms)}." if warning and warning.harms else ""
    held_until = dataset.options.get("held_until")
    author_count = sum(numbers["authors"].values())
    general_statements: dict[str, list[str]] = {
        "limitations": limits,
        "biases": _describe_biases(authorship, author_count),
        "personal_information": [
            "No people took part: programs wrote the texts."
            if authorship.is_simulated
            else "People who took part appear as keyed hashes whose key is not published. Their "
            f"texts are as they wrote them.{harms}"
        ],
        "use_cases": [
            f"Evaluating and training models for this task: {config.name}. Not for finding out or "
            "judging who wrote an example."
        ],
        "social_impact": [
            "Shows errors of models before they meet the public. The same rows can teach others "
            f"how to fool such models.{harms}"
        ],
        "maintenance_plan": [
            "A version never changes. People may withdraw what they wrote, and the next version "
            "has a tombstone in its place."
            + (f" Rows that are held back follow on {held_until}." if held_until else "")
        ],
        # The site stores neither who people are nor what texts were before they came here.
        "demographics": [],
        "raw_data": [],
        "preprocessing": [],
    }
    properties: dict[str, Any] = {}
    for name, rai_property in RAI_PROPERTIES.items():
        owner_statement = str(statements.get(name, "")).strip()
        # The owner's text comes first, because they know more than the numbers.
        texts = ([owner_statement] if owner_statement else []) + general_statements[name]
        properties[rai_property] = " ".join(texts) if rai_property in SINGLE_TEXTS else texts
    return properties


def _describe_biases(authorship: Authorship, author_count: int) -> list[str]:
    """Return what is one-sided about the rows, whoever collected them."""
    if authorship.is_simulated:
        return [f"{author_count} programs made the rows from a small pool of phrases."]
    if authorship.has_rows_to_judge:
        return ["The task's owners chose the texts."]
    biases = []
    if authorship.person_rows or not authorship.program_rows:
        biases.append(
            f"{author_count} people wrote the rows, by their own choice of subject and wording."
        )
    if authorship.program_rows or authorship.helped_rows:
        biases.append("Texts by programs repeat what their models tend to write.")
    # Without a model nobody tried to fool one.
    if authorship.models:
        biases.append("Rows that fooled the model are more frequent here than in ordinary use.")
    return biases


def _list_origins(sources: list[tuple[str, str, str, str]]) -> list[dict[str, str]]:
    """Return the datasets from which texts were taken.

    If there are none, return an entry which says that the texts are original.
    """
    origins = []
    for name, licence, _citation, url in sources:
        origin = {"@type": "sc:Dataset", "sc:name": name}
        if licence:
            origin["sc:license"] = licence
        if url:
            origin["sc:url"] = url
        origins.append(origin)
    # An empty list would look as if nobody had considered it.
    return origins or [{"@type": "prov:Entity", "sc:name": "Original: written for this round."}]


def _list_activities(
    dataset: Dataset, numbers: Numbers, authorship: Authorship
) -> list[dict[str, Any]]:
    """Return what was done to make the data, in order."""
    round, report = dataset.round, numbers["report"]
    writing = {
        "@type": "prov:Activity",
        "prov:label": "Collection",
        "sc:name": "Collection of texts",
        "sc:description": _describe_collection_method(dataset, authorship),
    }
    judging = {
        "@type": "prov:Activity",
        "prov:label": "Annotation",
        "sc:name": "Judging",
        "sc:description": _describe_votes(report, authorship),
    }
    release = {
        "@type": "prov:Activity",
        "prov:label": "Release",
        "sc:name": f"Release of version {dataset.version}",
        "sc:description": f"Round {round.number} was frozen and split by author.",
    }
    return [writing, judging, release]


def _describe_votes(report: Numbers, authorship: Authorship) -> str:
    """Return the number of blind votes and who gave them, as a sentence.

    The report counts only votes by people, or those of simulated people.
    """
    judges = authorship.counted_judges
    sentence = f"{report['validators']} {judges} gave {report['votes']} blind votes."
    if authorship.program_votes and not authorship.is_simulated:
        sentence += f" Programs gave {authorship.program_votes} others."
    return sentence
