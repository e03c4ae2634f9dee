"""Write the files about a version: dataset card, Croissant metadata, BenchmarkCard, checksums.

They are filled from the version's numbers and the task's configuration, and name no person.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml
from django.db.models import Count, OuterRef, Subquery
from django.db.models.fields.json import KeyTextTransform
from django.template.loader import render_to_string
from django.utils.translation import override

from core.text.languages import is_language_tag
from evaluation.dataset_releases import hub_benchmark, responsible_ai
from evaluation.dataset_releases.authorship import Authorship, read_authorship
from evaluation.dataset_releases.columns import FEATURE_NAMES, Field, list_fields
from evaluation.dataset_releases.croissant_tasks import PROBLEM_FILE, build_problem
from evaluation.dataset_releases.exporters import make_task_files
from evaluation.dataset_releases.files import compute_digest
from evaluation.dataset_releases.media_files import make_media_columns
from evaluation.dataset_releases.splits import DEV, HELD_SPLIT, PROGRAM_SPLIT, TEST, TRAIN
from evaluation.models import Dataset
from tasks.config.components import quote_labels
from tasks.config.schema import TaskConfig
from tasks.models import Context
from validation.models import Validation

LICENSES = {
    "cc-by-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "cc-by-sa-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "cc-by-nc-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "cc-by-nc-sa-4.0": "https://creativecommons.org/licenses/by-nc-sa/4.0/",
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
"""The URL of each licence's text, by the hub's name of the licence."""
HUB_SPLIT_NAMES = {
    TRAIN: "train",
    DEV: "validation",
    TEST: "test",
    PROGRAM_SPLIT: "program",
    HELD_SPLIT: "held",
}
HIDDEN_TEST_SPLIT = "test-unlabelled"
"""The name of the public files of a private test split."""
NO_MODEL_LIMIT = "No model answered the authors, so the rows are not hard for any one model."
SIMULATION_NOTICE = "Simulated: programs wrote and judged all rows of this release."
CROISSANT_CONTEXT = json.loads(Path(__file__).with_name("croissant_context.json").read_text())
"""The JSON-LD context of Croissant, as its specification gives it."""
HUB_SIZES = {  # by the number of rows, exclusive
    1_000: "n<1K",
    10_000: "1K<n<10K",
    100_000: "10K<n<100K",
    1_000_000: "100K<n<1M",
    10_000_000: "1M<n<10M",
    100_000_000: "10M<n<100M",
}
PART_NUMBERS = {
    "unanimous votes on steps": "step_unanimous_share",
    "Krippendorff's alpha of steps": "step_krippendorff_alpha",
    "criteria that are met": "criteria_met_share",
    "mean score by criteria": "criteria_score",
    "Krippendorff's alpha of criteria": "criteria_krippendorff_alpha",
}
"""The names in a report of what people said of parts of examples, by title."""
Numbers = Mapping[str, Any]
Digests = Mapping[str, str]


@override("en")
def write_cards(
    dataset: Dataset, folder: Path, numbers: Numbers, private_names: Sequence[str]
) -> None:
    """Write the dataset's cards, tasks for other tools, and SHA256SUMS of all files.

    folder: contains the dataset's files, and receives the new ones. private_names: names of the
    files that the cards leave out.
    """
    round = dataset.round
    tasks = make_task_files(round.task.config, round.task.code, round.number, dataset.version)
    # Before the cards are written, so that only data files count.
    digests = _digest_files(folder)
    public_digests = {name: digest for name, digest in digests.items() if name not in private_names}
    has_benchmark = hub_benchmark.write_benchmark(
        folder,
        tasks,
        split=DEV if dataset.options["private_test"] else TEST,
        title=make_title(dataset),
        description=_choose_description(dataset),
    )
    # Counted once: all cards say the same.
    authorship = read_authorship(dataset)
    benchmark_card = make_benchmark_card(dataset, numbers, authorship)
    card = benchmark_card["benchmark_card"]
    croissant = make_croissant(dataset, numbers, authorship, public_digests, folder)
    texts = {
        "croissant.json": _format_json(croissant),
        PROBLEM_FILE: _format_json(make_problem(dataset)),
        "benchmark_card.json": _format_json(benchmark_card),
        "README.md": render_readme(
            dataset, numbers, authorship, card, has_tasks=bool(tasks), has_benchmark=has_benchmark
        ),
    }
    texts |= _mark_simulated(tasks) if round.task.is_simulated else tasks
    for name, text in texts.items():
        (folder / name).write_text(text)
    # Now with all files, including the cards.
    lines = [f"{digest}  {name}\n" for name, digest in _digest_files(folder).items()]
    (folder / "SHA256SUMS").write_text("".join(lines))


def _digest_files(folder: Path) -> dict[str, str]:
    return {path.name: compute_digest(path) for path in sorted(folder.iterdir())}


def _mark_simulated(tasks: Mapping[str, str]) -> dict[str, str]:
    """Return the files with a notice that the data is simulated.

    The notice is added to Python files and as a file of its own.
    """
    marked_files = {"SIMULATED.txt": f"{SIMULATION_NOTICE}\n"}
    for name, text in tasks.items():
        if name.endswith(".py"):
            text = f"# {SIMULATION_NOTICE}\n{text}"
        marked_files[name] = text
    return marked_files


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def make_title(dataset: Dataset) -> str:
    """Return the version's title for readers."""
    round = dataset.round
    return f"{round.task.config.name}, round {round.number}, version {dataset.version}"


def make_bibtex(dataset: Dataset, url: str = "", digest: str = "", doi: str = "") -> str:
    """Return the BibTeX entry of the version.

    url: the URL of the version's page; "" leaves it out. digest: the SHA-256 of its SHA256SUMS
    file, which identifies every byte of the version; "" leaves it out. doi: under which the version
    is published; "" leaves it out.
    """
    # BibTeX would read these characters as commands or groups.
    title = make_title(dataset).translate(str.maketrans("", "", "{}\\%"))
    # While the version is being built, it has no end yet.
    released_at = dataset.finished_at or dataset.started_at
    assert released_at  # a running job has been started
    lines = [
        f"  title = {{{title}}},",
        f"  author = {{{{The {dataset.round.task.code} annotators}}}},",
        f"  year = {{{released_at:%Y}}},",
        f"  version = {{{dataset.version}}},",
    ]
    if url:
        lines.append(f"  url = {{{url}}},")
    if doi:
        lines.append(f"  doi = {{{doi}}},")
    if digest:
        lines.append(f"  note = {{sha256 of SHA256SUMS: {digest}}},")
    return "\n".join([f"@misc{{{dataset},", *lines, "}"])


def find_languages(dataset: Dataset) -> list[str]:
    """Return the languages of a release's texts, the task's own first. One query.

    The language of a context is read from its field `language`, or from its tag if all tags are
    languages.
    """
    config = dataset.round.task.config
    language_of_context = KeyTextTransform("language", "fields")
    contexts = Context.objects.filter(examples__dataset_items__dataset=dataset)
    values = contexts.order_by().values_list(language_of_context, "tag").distinct()
    # A context field is meant for the language, but a tag may contain anything.
    column_index = 0 if _has_language(config) else 1
    languages: set[str | None] = set()
    for row in values:
        languages.add(row[column_index])
    named_languages = {language for language in languages if language}
    # If any tag is not a language, tags mean something else in this task.
    if not named_languages or not all(map(is_language_tag, named_languages)):
        return [config.language]
    if len(named_languages) < len(languages):  # texts without one are in the task's language
        named_languages.add(config.language)
    return sorted(named_languages, key=lambda language: (language != config.language, language))


def _has_language(config: TaskConfig) -> bool:
    return any(component.name == "language" for component in config.context)


def _choose_description(dataset: Dataset) -> str:
    return str(dataset.options["description"]) or dataset.round.task.config.summary


# The dataset card


def render_readme(
    dataset: Dataset,
    numbers: Numbers,
    authorship: Authorship,
    benchmark_card: Mapping[str, Any],
    *,
    has_tasks: bool,
    has_benchmark: bool,
) -> str:
    """Return the dataset card in the Hugging Face Hub's format: YAML metadata, then Markdown."""
    config, test_name = dataset.round.task.config, _get_public_test_name(dataset)
    files = {split: f"{split}.parquet" for split in HUB_SPLIT_NAMES} | {
        TEST: f"{test_name}.parquet"
    }
    row_count, sources = sum(numbers["rows"].values()), _list_sources(dataset)
    front_matter = {
        "pretty_name": make_title(dataset),
        "license": dataset.options["license"],
        # The Hub expects codes without a region, each once.
        "language": list(dict.fromkeys(tag.split("-")[0] for tag in find_languages(dataset))),
        "task_categories": [config.get_component(config.answer_field).kind.hub_category],
        "size_categories": [
            next(size for max_row_count, size in HUB_SIZES.items() if row_count < max_row_count)
        ],
        "annotations_creators": authorship.annotations_creators,
        "language_creators": authorship.language_creators,
        "source_datasets": ["extended" if sources else "original"],
        "tags": ["dynabench", "adversarial", *authorship.origin_tags],
        "configs": [
            {
                "config_name": "default",
                "data_files": [
                    {"split": HUB_SPLIT_NAMES[split], "path": files[split]}
                    for split in numbers["rows"]
                ],
            }
        ],
    }
    if has_benchmark:
        questions = {"split": hub_benchmark.HUB_SPLIT, "path": hub_benchmark.QUESTIONS_FILE}
        config_entry = {"config_name": hub_benchmark.CONFIG_NAME, "data_files": [questions]}
        front_matter["configs"].append(config_entry)
    text = render_to_string(
        "evaluation/README.md",
        {
            "title": make_title(dataset),
            "description": _choose_description(dataset),
            "card": benchmark_card,
            "authorship": authorship,
            "splits": _describe_splits(numbers),
            "numbers": numbers,
            "fields": (*list_fields(config), *make_media_columns(config)),
            "parts": _describe_fields(config),
            "bibtex": make_bibtex(dataset, dataset.options["url"]),
            "canary": dataset.options["canary"],
            "held_until": dataset.options.get("held_until"),
            "has_tasks": has_tasks,
            "sources": sources,
            "round": dataset.round,
            "blind": _list_blind_judging_periods(dataset),
        },
    )
    return f"---\n{yaml.safe_dump(front_matter, sort_keys=False, allow_unicode=True)}---\n\n{text}"


def _describe_splits(numbers: Numbers) -> list[dict[str, Any]]:
    """Return the card's description of each split."""
    splits = []
    for name, rows in numbers["rows"].items():
        split = {"name": name, "rows": rows}
        split["authors"] = numbers["authors"][name]
        split["withdrawn"] = numbers["withdrawn"][name]
        split["labels"] = _describe_labels(numbers["labels"][name])
        splits.append(split)
    return splits


def _list_blind_judging_periods(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the periods of owners' blind judging, with the number of their votes in the round."""
    votes = Validation.objects.filter(
        validator=OuterRef("annotator"), example__round=dataset.round
    ).order_by()
    # Grouped here: an annotation over both joins would count votes several times.
    count = votes.values("validator").annotate(n=Count("pk")).values("n")
    rows = dataset.round.task.blind_judgings.annotate(votes=Subquery(count)).exclude(votes=None)
    return list(map(dict, rows.values("began_at", "ended_at", "votes")))


def _list_sources(dataset: Dataset) -> list[tuple[str, str, str, str]]:
    """Return (name, licence, citation, URL) of other people's data in the round."""
    batches = dataset.round.batches.exclude(license="", citation="", origin="").order_by("pk")
    sources = []
    # A source with several imported batches is listed once.
    for name, licence, citation, origin in dict.fromkeys(
        batches.values_list("file_name", "license", "citation", "origin")
    ):
        sources.append((name, licence, indent(citation, "      "), origin))
    return sources


def _describe_fields(config: TaskConfig) -> list[tuple[str, str, str]]:
    """Return (column, field, meaning) for each of the task's own fields. Columns contain JSON."""
    columns = {
        "context_json": config.context,
        "input_json": config.input,
        "metadata_json": config.metadata.create,
    }
    rows = []
    for column, components in columns.items():
        for component in components:
            meaning = " ".join(component.kind.describe_value(component).split())
            rows.append((column, component.name, meaning))
    return rows


def _get_public_test_name(dataset: Dataset) -> str:
    return HIDDEN_TEST_SPLIT if dataset.options["private_test"] else TEST


def _describe_labels(counts_by_kind: Mapping[str, Mapping[str, int]]) -> str:
    """Return a text with the number of rows for each label, in the order of the labels."""
    sums: Counter[str] = Counter()
    for counts in counts_by_kind.values():
        sums.update(counts)
    labels = sorted(label for label in sums if label)
    quoted_labels = zip(quote_labels(labels), labels, strict=True)
    return ", ".join(f"{quoted_label} {sums[label]}" for quoted_label, label in quoted_labels)


# Croissant


def make_croissant(
    dataset: Dataset, numbers: Numbers, authorship: Authorship, digests: Digests, folder: Path
) -> dict[str, Any]:
    """Return metadata in MLCommons' Croissant format 1.1, with its properties on responsible AI.

    File paths are relative.
    """
    options, round = dataset.options, dataset.round
    formats = {
        "jsonl": "application/jsonlines",
        "parquet": "application/x-parquet",
        "zip": "application/zip",
    }
    assert dataset.started_at
    test_name, languages = _get_public_test_name(dataset), find_languages(dataset)
    splits = [split for split in HUB_SPLIT_NAMES if split not in (PROGRAM_SPLIT, HELD_SPLIT)]
    splits += [split for split in (PROGRAM_SPLIT, HELD_SPLIT) if f"{split}.parquet" in digests]
    config = round.task.config
    media_columns = make_media_columns(config)
    files = []
    for name, digest in digests.items():
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{(folder / name).stat().st_size} B",
                "encodingFormat": formats[name.rsplit(".", 1)[1]],
                "sha256": digest,
            }
        )
    metadata = {
        "@context": CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", responsible_ai.CONFORMS_TO],
        "name": f"{round.task.code}-round{round.number}",
        "description": _choose_description(dataset) or make_title(dataset),
        "version": f"{dataset.version}.0.0",
        "datePublished": f"{dataset.started_at:%Y-%m-%d}",
        "license": LICENSES[options["license"]],
        "inLanguage": languages[0] if len(languages) == 1 else languages,
        "creator": {"@type": "sc:Organization", "name": f"The {round.task.code} annotators"},
        "citeAs": make_bibtex(dataset, options["url"]),
        **responsible_ai.make_rai_properties(
            dataset,
            numbers,
            _describe_limits(numbers, authorship.models),
            _list_sources(dataset),
            authorship,
        ),
        "distribution": files,
        "recordSet": [
            _make_record_set(config, split, test_name if split == TEST else split, media_columns)
            for split in splits
        ],
    }
    if options["url"]:
        metadata["url"] = options["url"]
    return metadata


def make_problem(dataset: Dataset) -> dict[str, Any]:
    """Return the release as a problem to solve: answer the rows of its test split."""
    test_name = _get_public_test_name(dataset)
    source = {
        "@type": "Dataset",
        "name": f"{test_name} split",
        "url": "croissant.json",
        "version": f"{dataset.version}.0.0",
        "distribution": {"@type": "DataDownload", "contentUrl": f"{test_name}.jsonl"},
    }
    url = str(dataset.options["url"])
    return build_problem(
        dataset.round.task.config,
        problem_id=f"{url}#task" if url else "#task",
        name=make_title(dataset),
        input_dataset=source,
    )


def _make_record_set(
    config: TaskConfig, split: str, name: str, media_columns: Sequence[Field]
) -> dict[str, Any]:
    # Files of a private test split contain only the columns without answers.
    fields = list(list_fields(config))
    if name == HIDDEN_TEST_SPLIT:
        fields = [field for field in fields if field.name in FEATURE_NAMES]
    fields += media_columns
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"The {split} split.",
        "key": {"@id": f"{split}/uid"},
        "field": [_make_croissant_field(field, split, f"{name}.parquet") for field in fields],
    }


def _make_croissant_field(
    field: Field, location: str, file: str, column: str = ""
) -> dict[str, Any]:
    """Return Croissant's description of a field.

    location: the id of the record set or field that contains it. file: the id of its Parquet file.
    column: the Parquet column whose JSON contains the field; "" if it is a column itself.
    """
    field_id = f"{location}/{field.name}"
    description: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": field_id,
        "name": field.name,
        "description": field.meaning,
    }
    # Croissant has lists, but no lists of lists: `validations` is an array of triples.
    if field.depth == 1:
        description["repeated"] = True
    elif field.depth == 2:
        description |= {"isArray": True, "arrayShape": "-1,3"}
    if field.parts:
        sub_fields = [
            _make_croissant_field(sub_field, field_id, file, field.name)
            for sub_field in field.parts
        ]
        return {**description, "subField": sub_fields}
    source: dict[str, Any] = {
        "fileObject": {"@id": file},
        "extract": {"column": column or field.name},
    }
    # A part of an object, because the column contains JSON.
    if column:
        source["transform"] = {"jsonPath": field.name}
    types = {
        "whole": "cr:Int64",
        "number": "sc:Float",
        "flag": "sc:Boolean",
        "image": "sc:ImageObject",
        "audio": "sc:AudioObject",
    }
    # `datasets` stores such a column as bytes and path.
    if field.kind in ("image", "audio"):
        source["transform"] = {"jsonPath": "bytes"}
    return {**description, "dataType": types.get(field.kind, "sc:Text"), "source": source}


# The BenchmarkCard


def make_benchmark_card(
    dataset: Dataset, numbers: Numbers, authorship: Authorship
) -> dict[str, Any]:
    """Return the sections of a BenchmarkCard (Sokol et al. 2024) whose contents are known."""
    config, options = dataset.round.task.config, dataset.options
    # The task's own warning about content that may hurt readers.
    warning = config.content_warning
    return {
        "benchmark_card": {
            "benchmark_details": {
                "name": make_title(dataset),
                "overview": _choose_description(dataset),
                "data_type": ", ".join(["text", *sorted(set(config.media_fields.values()))]),
                "languages": find_languages(dataset),
                "resources": [options["url"]] if options["url"] else [],
            },
            "purpose_and_intended_users": {
                "goal": authorship.goal,
                "audience": ["researchers who train or evaluate models"],
                "tasks": [config.name],
                "out_of_scope_uses": ["judging or finding out who wrote an example"],
                "limitations": _describe_limits(numbers, authorship.models),
            },
            "data": _describe_data(dataset, numbers, authorship),
            "methodology": _describe_methodology(dataset, numbers["report"]),
            "targeted_risks": {
                "risk_categories": list(warning.harms) if warning else [],
                "description": warning.text if warning else "None is known to us.",
            },
            "ethical_and_legal_considerations": {
                "privacy_and_anonymity": "No people took part."
                if authorship.is_simulated
                else "People appear as keyed hashes whose key is not published. Authors can "
                "withdraw; the next version has a tombstone.",
                "data_licensing": options["license"],
            },
        }
    }


def _describe_data(dataset: Dataset, numbers: Numbers, authorship: Authorship) -> dict[str, str]:
    report, rows = numbers["report"], numbers["rows"]
    return {
        "source": authorship.describe_writers(),
        "size": ", ".join(f"{n} {split}" for split, n in rows.items()),
        "format": "JSON lines and Parquet",
        "canary": dataset.options["canary"],
        "annotation": f"{report['votes']} votes by {report['validators']} "
        f"{authorship.counted_judges}, each given "
        "before the author's label was seen. Every row of dev and test has a consensus that "
        "agrees with its author, or the owner's word.",
    }


def _describe_methodology(dataset: Dataset, report: Numbers) -> dict[str, Any]:
    config = dataset.round.task.config
    baseline = {
        "model error rate (MER)": "mer",
        "catch rate (vMER)": "vmer",
        "agreement of the model": "model_accuracy",
    }
    validation = {
        "agreement between judges": "human_accuracy",
        "unanimous votes": "unanimous_share",
        "Krippendorff's alpha": "krippendorff_alpha",
    }
    # Only tasks whose judges judge steps or criteria have these numbers.
    validation |= {title: name for title, name in PART_NUMBERS.items() if name in report}
    return {
        "methods": [
            "Rule of the round: an example counts as fooling when it "
            f"{dataset.round.get_rule_display()}.",
            f"Splits are drawn by author; the seed is {dataset.options['seed']}.",
        ],
        "metrics": list(config.metrics.computed_names),
        "calculation": "Model error rate (MER): tries that the targets got wrong ÷ all tries. "
        "Catch rate (vMER): those that others confirmed ÷ all tries.",
        "interpretation": "A model in the loop scores low on its own round; compare other models "
        "with each other.",
        "baseline_results": {
            title: _describe_number(report, name) for title, name in baseline.items()
        },
        "validation": {title: _describe_number(report, name) for title, name in validation.items()},
    }


def _describe_limits(numbers: Numbers, models: str) -> list[str]:
    """Return the limitations of the data that the numbers show."""
    shared_contexts = numbers["shared_contexts"]
    unjudged_count = sum(numbers["labels"][TRAIN]["unjudged"].values())
    return [
        f"Made against {models}: what they get wrong is common here." if models else NO_MODEL_LIMIT,
        f"{shared_contexts[TEST]} test and {shared_contexts[DEV]} dev rows share their context "
        "with a train row.",
        f"{unjudged_count} train rows were judged by nobody (validated is false).",
        f"{numbers['parted_edits']} edits lie in another split than what they edit.",
        # Empty where people wrote none of the rows here.
        *filter(None, [numbers.get("machine_share")]),
    ]


def _describe_number(report: Numbers, name: str) -> str:
    """Return a number of the report as text, or the reason why it is missing.

    Shares have an interval.
    """
    text = responsible_ai.describe_number(report[name])
    return f"not known: {report['notes'][name]}" if text is None else text
