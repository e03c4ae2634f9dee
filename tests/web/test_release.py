"""A closed round becomes a dataset: who may, what is in it, and what never is."""

# ruff: noqa: F811  (fixtures are named where they are used)

import hashlib
import json
import re
from collections import Counter, defaultdict
from dataclasses import asdict, fields
from io import BytesIO

import pyarrow.parquet as pq
import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone
from rdflib import RDF

from annotation.models import Assignment, Example
from annotation.moderation import withdraw_example
from core.accounts.models import Annotator
from evaluation.api.releases import StatementsSerializer
from evaluation.dataset_releases import build as release
from evaluation.dataset_releases.authorship import read_authorship
from evaluation.dataset_releases.build import Build, Options
from evaluation.dataset_releases.cards import find_languages
from evaluation.dataset_releases.census import REASONS
from evaluation.dataset_releases.reading import read_split_rows
from evaluation.dataset_releases.responsible_ai import MINIMAL, make_rai_properties
from evaluation.dataset_releases.services import ReleaseRefused, request_release
from evaluation.dataset_releases.statements import RAI_PROPERTIES, StatementsForm
from evaluation.isolation.queue import leases
from evaluation.jobs import build_dataset
from evaluation.models import Dataset, DatasetFile
from evaluation.test_sets.source_services import make_release_version
from tasks.models import Round, Task
from tasks.services import install_official_tasks
from tests.support.croissant_graphs import CR, SCHEMA, list_breaches, read_graph
from tests.support.factories import RoundFactory
from tests.support.releases import (  # noqa: F401
    LABELS,
    SPLITS,
    _own_storage,
    closed,
    content,
    judge,
    lines,
    people,
    released,
)
from validation.decisions.consensus_rows import derive_consensus
from validation.models import OwnerDecision, Validation


def test_a_release_holds_what_was_confirmed_and_no_author_twice(closed):
    dataset = released(closed)
    rows = {split: lines(dataset, split) for split in SPLITS}
    assert [len(rows[split]) for split in SPLITS] == [40, 8, 8]
    authors = {split: {row["anon_uid"] for row in rows[split]} for split in SPLITS}
    assert sum(map(len, authors.values())) == len(set.union(*authors.values())) == 12
    assert all(row["validated"] for row in rows["dev"] + rows["test"])
    assert {row["outcome"] for row in rows["train"] if not row["validated"]} == {"not_fooled"}
    closed.refresh_from_db()
    assert closed.state == "released"
    assert dataset.numbers["rows"] == {"train": 40, "dev": 8, "test": 8}
    assert dataset.numbers["shared_authors"] == 0


def test_what_a_version_tells_of_itself_is_counted_from_its_rows(closed):
    Example.objects.exclude(pk=(first := Example.objects.first()).pk).update(parent=first)
    dataset = released(closed)
    rows = {split: lines(dataset, split) for split in SPLITS}
    numbers = dataset.numbers
    split_of = {row["uid"]: split for split in SPLITS for row in rows[split]}
    home = split_of[str(first.uuid)]
    assert numbers["parted_edits"] == sum(len(rows[s]) for s in SPLITS if s != home) > 0
    seen = {row["cid"] for row in rows["train"]}
    for split in ("dev", "test"):
        shared = sum(row["cid"] in seen for row in rows[split])
        assert numbers["shared_contexts"][split] == shared
    for split in SPLITS:
        confirmed = Counter(row["label"] for row in rows[split] if row["validated"])
        assert numbers["labels"][split]["validated"] == confirmed
        assert numbers["authors"][split] == len({row["anon_uid"] for row in rows[split]})
    assert numbers["left_out"] == 60 - len(split_of)
    assert rows[home][0]["parent_uid"] in (None, str(first.uuid))


def test_a_row_has_dynabenchs_names_and_nothing_of_a_person(closed, people):
    row = lines(released(closed), "test")[0]
    example = Example.objects.get(uuid=row["uid"])
    assert json.loads(row["input_json"]) == example.inputs
    assert json.loads(row["context"]["context_json"]) == example.context.fields
    assert json.loads(row["output_json"]) == {
        "label": "neutral",
        "prob": {"neutral": 0.75, "entailment": 0.25},
    }
    assert json.loads(row["metadata_json"]) == {"why_right": ["negation"]}
    assert row["label"] == example.inputs["label"]
    assert row["model_wrong"] is (example.outcome == "fooled")
    assert (row["model_endpoint_name"], row["total_verified"]) == ("nli-target", 3)
    assert row["votes"] == [{"vote": row["label"], "count": 3}]
    assert {(vote, mode) for vote, mode, _ in row["validations"]} == {(row["label"], "user")}
    assert row["targets"][0]["version"] == "d" * 64
    assert row["withdrawn"] is False


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (("de", "en", "de"), ["en", "de"]),
        (("de", "weather", "en"), ["en"]),
        (("pt-BR", "pt-BR", "de"), ["de", "pt-BR"]),
        (("", "de", "de"), ["en", "de"]),
        (("", "", ""), ["en"]),
    ],
)
def test_the_cards_name_the_languages_of_the_texts(closed, tags, expected):
    for context, tag in zip(closed.contexts.order_by("pk"), tags, strict=True):
        closed.contexts.filter(pk=context.pk).update(tag=tag)
    dataset = request_release(round=closed, options=Options(dev=8, test=8), actor=None)
    Build(leases.claim_job(Dataset, dataset.pk))._freeze_rows()
    assert find_languages(dataset) == expected


def test_the_help_that_authors_had_is_released(closed):
    had = {"challenge": "negation", "examples": 2, "arm": "drafts", "edit_distance": 3}
    taken = Example.objects.filter(inputs__label="neutral")
    taken.update(challenge="negation", support=had)
    dataset = released(closed)
    rows = lines(dataset, "test")
    helped = [row for row in rows if row["challenge"]]
    assert 0 < len(helped) < len(rows)
    assert {(row["challenge"], row["support_json"]) for row in rows} == {
        ("negation", '{"arm":"drafts","challenge":"negation","edit_distance":3,"examples":2}'),
        (None, None),
    }
    assert make_release_version(dataset).slices["challenge"] == {"negation": len(helped)}


def test_an_owners_word_is_a_vote_of_mode_owner(closed, alice):
    refuted = Example.objects.filter(consensus__is_verified=False).first()
    decision = OwnerDecision.objects.create(
        example=refuted, owner=alice, label=refuted.inputs["label"]
    )
    refuted.consensus.decided_by = "owner"
    refuted.consensus.save()
    derive_consensus(refuted, list(refuted.validations.all()))
    dataset = released(closed)
    row = json.loads(dataset.items.get(example=refuted).line)
    assert row["decided_by"] == "owner"
    assert row["validations"][-1] == [decision.label, "owner", None]


def test_no_byte_of_any_file_names_a_person(closed, people):
    dataset = released(closed)
    secrets = [person.pseudonym for person in people] + ["A1SECRETWORKER"]
    for file in dataset.files.all():
        data = content(dataset, file.name)
        assert not [secret for secret in secrets if secret.encode() in data], file.name


def test_pseudonyms_are_the_same_in_all_versions_and_differ_by_role(closed, people):
    Validation.objects.filter(validator=people[14]).update(validator=people[0], author=None)
    dataset = released(closed)
    rows = [row for split in SPLITS for row in lines(dataset, split)]
    authors = {row["anon_uid"] for row in rows}
    validators = {who for row in rows for _, _, who in row["validations"]}
    assert len(validators) == 3
    assert not authors & validators


def test_parquet_says_the_same_as_json_lines(closed):
    import pyarrow.parquet as pq

    dataset = released(closed)
    for split in SPLITS:
        with dataset.files.get(name=f"{split}.parquet").file.open() as file:
            assert pq.read_table(file).to_pylist() == lines(dataset, split)


def test_digests_and_sizes_are_those_of_the_files(closed):
    dataset = released(closed)
    sums = dict(
        reversed(line.split("  ")) for line in content(dataset, "SHA256SUMS").decode().splitlines()
    )
    assert len(sums) == 18
    for file in dataset.files.all():
        data = content(dataset, file.name)
        assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert sums.get(file.name, file.sha256) == file.sha256


def test_croissant_is_valid_and_reads_every_row(closed, tmp_path):
    import mlcroissant

    dataset = released(closed)
    folder = tmp_path / "releases" / str(dataset)
    read = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not read.metadata.ctx.issues.errors
    for split in SPLITS:
        records = list(read.records(split))
        assert [record[f"{split}/uid"].decode() for record in records] == [
            row["uid"] for row in lines(dataset, split)
        ]
    assert records[0]["test/votes"][0]["test/votes/count"] == 3


def test_croissant_says_all_that_conferences_ask(closed):
    import mlcroissant

    own = {
        "biases": "All authors speak Danish.",
        "demographics": "Nine students.",
        "raw_data": "Articles of the Danish Wikipedia.",
        "preprocessing": "Cut after 200 words.",
    }
    dataset = released(closed, statements=own)
    metadata = json.loads(content(dataset, "croissant.json"))
    assert all(metadata[name] not in ("", []) for name in MINIMAL)
    assert metadata["rai:dataBiases"][0] == own["biases"]
    assert metadata["rai:annotatorDemographics"] == [own["demographics"]]
    assert metadata["rai:hasSyntheticData"] is False
    assert metadata["rai:annotationsPerItem"].startswith("3 to 3 votes on each of the ")
    assert len(metadata["rai:dataCollectionTimeFrame"]) == 2
    read = mlcroissant.Dataset(jsonld=metadata)
    assert not read.metadata.ctx.issues.errors
    assert not read.metadata.ctx.issues.warnings
    # What the validator knows by name it has also understood.
    assert read.metadata.data_biases[0] == own["biases"]
    assert read.metadata.annotations_per_item == metadata["rai:annotationsPerItem"]
    assert read.metadata.data_collection_raw_data == own["raw_data"]
    assert read.metadata.data_preprocessing_protocol == [own["preprocessing"]]


def test_each_statement_is_asked_and_fills_a_property_of_the_vocabulary():
    import mlcroissant

    assert StatementsForm().fields.keys() == RAI_PROPERTIES.keys()
    assert StatementsSerializer().fields.keys() == RAI_PROPERTIES.keys()
    known = {str(field.metadata["url"]) for field in fields(mlcroissant.Metadata) if field.metadata}
    prefix = "http://mlcommons.org/croissant/RAI/"
    assert {name.replace("rai:", prefix) for name in RAI_PROPERTIES.values()} <= known


def test_a_release_is_also_a_problem_to_solve(closed):
    dataset = released(closed)
    problem = json.loads(content(dataset, "croissant_task.json"))
    graph = read_graph(problem)
    assert list_breaches(graph) == []
    [node] = graph.subjects(RDF.type, CR.TaskProblem)
    metrics = {
        str(graph.value(spec, SCHEMA.name)) for spec in graph.objects(None, CR.expectedMetric)
    }
    assert metrics == set(dataset.round.task.config.metrics.computed_names)
    given = problem["cr:input"]["distribution"]["contentUrl"]
    assert given in dataset.files.values_list("name", flat=True)
    # The rules can tell a problem that asks for nothing.
    for name in ("cr:output", "cr:implementation"):
        del problem[name]
    assert list_breaches(read_graph(problem)) == [f"{node} asks for nothing"]


def test_each_official_task_has_what_conferences_ask_though_nobody_states_it(db):
    install_official_tasks()
    report = dict.fromkeys(("krippendorff_alpha", "unanimous_share")) | {
        "votes": 0,
        "validators": 0,
    }
    numbers = {"rows": {"train": 1}, "authors": {"train": 1}, "reasons": {}, "report": report}
    for task in Task.objects.all():
        round = task.rounds.first() or RoundFactory(task=task)
        dataset = Dataset.objects.create(round=round, version=1, options=asdict(Options()))
        authorship = read_authorship(dataset)
        properties = make_rai_properties(dataset, numbers, ["A limit."], [], authorship)
        assert not {name for name in MINIMAL if properties.get(name) in (None, "", [])}, task.code
        assert "rai:annotatorDemographics" not in properties  # nobody asked
        is_brought_in = task.config.has_rows_to_judge
        kind = "Secondary Data Analysis" if is_brought_in else "Manual Human Curator"
        assert properties["rai:dataCollectionType"] == [kind], task.code


def test_what_is_said_of_the_data_fits_how_it_was_made(closed, monkeypatch):
    dataset = released(closed)
    numbers = {
        "rows": {"train": 1, "program": 2},
        "authors": {"train": 7},
        "reasons": {"author": 3},
    }
    numbers |= {"report": defaultdict(lambda: None, votes=9, validators=4)}
    program_rows = list(dataset.items.values_list("example", flat=True)[:2])
    Example.objects.filter(pk__in=program_rows).update(by_program=True)

    def describe(dataset):
        return make_rai_properties(dataset, numbers, [], [], read_authorship(dataset))

    about_people = describe(dataset)
    assert about_people["rai:dataCollectionType"] == ["Manual Human Curator", "Software Collection"]
    assert str(REASONS["author"]) in about_people["rai:dataCollectionMissingData"]
    without_model = RoundFactory(task=closed.task, number=9)
    other = Dataset.objects.create(round=without_model, version=1, options=dataset.options)
    assert len(about_people["rai:dataBiases"]) == 3
    assert len(describe(other)["rai:dataBiases"]) == 1
    monkeypatch.setattr(Task, "is_simulated", True)
    about_programs = describe(dataset)
    assert about_programs["rai:dataCollectionType"] == ["Software Collection"]
    assert about_programs["rai:hasSyntheticData"] is True
    # Nobody reads that people made or judged what programs did.
    for name in ("rai:dataBiases", "rai:dataAnnotationProtocol", "prov:wasGeneratedBy"):
        assert "people" not in json.dumps(about_programs[name]).lower(), name
        assert "programs" in json.dumps(about_programs[name]).lower(), name


def test_a_later_version_keeps_what_the_owner_stated(closed, alice):
    own = {"use_cases": "For tests of parsers."}
    first = released(closed, statements=own)
    withdraw_example(example=first.items.first().example, actor=alice, reason="names a person")
    second = released(closed, dev=0, test=0)
    assert second.options["statements"] == own


def test_a_later_vote_or_edit_changes_no_byte(closed, people):
    dataset = released(closed)
    before = {file.name: content(dataset, file.name) for file in dataset.files.all()}
    example = dataset.items.first().example
    judge(example, people[15:], "neutral")
    Example.objects.update(inputs={"hypothesis": "changed", "label": "neutral"})
    assert before == {file.name: content(dataset, file.name) for file in dataset.files.all()}
    assert "changed" not in "".join(dataset.items.values_list("line", flat=True))


def test_a_withdrawn_example_is_a_tombstone_in_the_next_version_only(closed, alice):
    first = released(closed)
    before = {file.name: content(first, file.name) for file in first.files.all()}
    gone = first.items.filter(split="test").first()
    withdraw_example(example=gone.example, actor=alice, reason="names a person")
    second = released(closed, dev=0, test=0)
    assert before == {file.name: content(first, file.name) for file in first.files.all()}
    old = {row["uid"]: row for row in lines(first, "test")}
    new = {row["uid"]: row for row in lines(second, "test")}
    its = {"uid": gone.uid, "split": "test", "task": "nli", "round": 1}
    its |= {"withdrawn": True, "canary": first.options["canary"]}
    assert new == old | {gone.uid: its}
    assert [lines(second, split) for split in ("train", "dev")] == [
        lines(first, split) for split in ("train", "dev")
    ]
    assert second.numbers["withdrawn"] == {"train": 0, "dev": 0, "test": 1}
    assert second.numbers["rows"]["test"] == 7
    assert gone.uid not in {row["uid"] for row in read_split_rows(second, "test")}


def test_every_row_and_card_has_the_canary_of_the_round(closed, alice):
    first = released(closed, private_test=True)
    withdraw_example(example=first.items.first().example, actor=alice, reason="names a person")
    second = released(closed, private_test=True)
    canary = first.options["canary"]
    assert re.fullmatch(r"dynabench:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", canary)
    for dataset in (first, second):
        for split in (*SPLITS, "test-unlabelled"):
            found = lines(dataset, split)
            assert found
            assert {row["canary"] for row in found} == {canary}
            table = pq.read_table(BytesIO(content(dataset, f"{split}.parquet")))
            assert set(table["canary"].to_pylist()) == {canary}
        for card in ("README.md", "benchmark_card.json"):
            assert canary.encode() in content(dataset, card)


def test_what_is_deleted_altogether_is_a_tombstone_too(closed):
    first = released(closed)
    gone = first.items.filter(is_validated=False).first()
    gone.example.delete()
    second = released(closed)
    assert second.items.get(uid=gone.uid).is_withdrawn


def test_a_killed_job_leaves_nothing_to_see_and_runs_again(closed, monkeypatch):
    def killed(*args):
        raise SystemExit

    asked = request_release(round=closed, options=Options(dev=8, test=8), actor=None)
    with monkeypatch.context() as patch:
        patch.setattr(release.Build, "_publish", killed)
        with pytest.raises(SystemExit):
            build_dataset(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "running"
    assert not DatasetFile.objects.exists()
    closed.refresh_from_db()
    assert closed.state == "closed"
    Dataset.objects.update(lease_until=timezone.now() - leases.LEASE_TIME)
    leases.sweep_jobs()
    build_dataset(asked.pk)
    asked.refresh_from_db()
    assert (asked.state, asked.items.count()) == ("done", 56)
    kept = default_storage.listdir(f"releases/{asked}")[1]
    assert sorted(kept) == sorted(file.name for file in asked.files.all())


def test_a_worker_that_lost_its_lease_publishes_nothing(closed, monkeypatch):
    asked = request_release(round=closed, options=Options(dev=8, test=8), actor=None)

    def taken_away(build):
        Dataset.objects.update(lease_token="0" * 32)
        return {}

    monkeypatch.setattr(release.Build, "_compute_numbers", taken_away)
    build_dataset(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "running"
    assert not DatasetFile.objects.exists()


def test_a_round_that_is_opened_again_meanwhile_is_not_released(closed):
    asked = request_release(round=closed, options=Options(dev=8, test=8), actor=None)
    Round.objects.update(state="open")
    build_dataset(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "failed"
    Round.objects.update(state="closed")
    assert released(closed).version == 1


def test_a_database_that_was_away_fails_no_release(closed, monkeypatch):
    def away(*args):
        raise OperationalError("server closed the connection unexpectedly")

    asked = request_release(round=closed, options=Options(dev=8, test=8), actor=None)
    with monkeypatch.context() as patch:
        patch.setattr(release.Build, "_publish", away)
        for attempt, state in enumerate(("queued", "queued", "failed"), 1):
            build_dataset(asked.pk)
            asked.refresh_from_db()
            assert (asked.state, asked.attempts) == (state, attempt)
            Dataset.objects.update(not_before=None)
    assert not DatasetFile.objects.exists()
    Dataset.objects.update(state="queued", attempts=1)
    build_dataset(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "done"


def test_an_error_is_told_without_its_inside(closed, monkeypatch):
    def broken(*args):
        raise OSError("No space left on /secret/path")

    asked = request_release(round=closed, options=Options(dev=8, test=8), actor=None)
    monkeypatch.setattr(release, "write_cards", broken)
    build_dataset(asked.pk)
    asked.refresh_from_db()
    assert asked.state == "failed"
    assert "OSError" in asked.error
    assert "secret" not in asked.error


def test_what_is_withdrawn_while_rows_are_read_does_not_enter(closed, monkeypatch):
    late = Example.objects.filter(consensus__is_verified=True).first()
    store = release.Build._store_rows

    def and_withdraw(build, rows, progress):
        store(build, rows, progress)
        withdraw_example(example=late, actor=None, reason="")

    monkeypatch.setattr(release.Build, "_store_rows", and_withdraw)
    dataset = released(closed)
    assert not dataset.items.filter(uid=str(late.uuid)).exists()
    assert sum(dataset.numbers["rows"].values()) == dataset.items.count()


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"state": "open"}, {}, "closed"),
        ({}, {"test": 400}, "train 0, dev 0 and test 48"),
        ({}, {"train": 200}, "train 40, dev 8 and test 8"),
    ],
)
def test_why_a_round_is_not_released(closed, changes, options, words):
    now, somebody = timezone.now(), Annotator.objects.create(pseudonym="w-writes")
    Assignment.objects.create(
        round=closed, context=closed.contexts.first(), annotator=somebody, assigned_at=now
    )
    Round.objects.filter(pk=closed.pk).update(closed_at=now, **changes)
    wanted = Options(**{"dev": 8, "test": 8, **options})
    with pytest.raises(ReleaseRefused, match=words):
        request_release(round=closed, options=wanted, actor=None)
    assert not Dataset.objects.exists()


def test_nothing_to_release(nli):
    Round.objects.update(state="closed")
    with pytest.raises(ReleaseRefused):
        request_release(round=nli, options=Options(), actor=None)
    assert not Dataset.objects.exists()


def test_one_version_at_a_time_and_none_without_a_change(closed):
    request_release(round=closed, options=Options(), actor=None)
    with pytest.raises(ReleaseRefused):
        request_release(round=closed, options=Options(), actor=None)
    build_dataset(Dataset.objects.get().pk)
    with pytest.raises(ReleaseRefused):
        request_release(round=closed, options=Options(), actor=None)
    assert Dataset.objects.get().version == 1


def test_a_private_test_split_shows_no_answer(closed):
    dataset = released(closed, private_test=True)
    private = set(dataset.files.filter(is_public=False).values_list("name", flat=True))
    assert private == {"test.jsonl", "test.parquet"}
    full = {row["uid"]: row for row in lines(dataset, "test")}
    hidden = lines(dataset, "test-unlabelled")
    assert {row["uid"] for row in hidden} == set(full)
    for row in hidden:
        assert json.loads(row["input_json"]).keys() == {"hypothesis"}
        assert not row.keys() & {"label", "votes", "validations", "targets", "output_json"}
    croissant = json.loads(content(dataset, "croissant.json"))
    named = {file["name"] for file in croissant["distribution"]}
    assert not named & private


def test_the_dataset_card_is_the_hubs(closed):
    import yaml

    about = {"license": "cc0", "citation": "@misc{a}", "origin": "https://hub.test/datasets/a"}
    closed.batches.create(file_name="a (plain, train)", **about)
    card = content(released(closed, description="Only *short* statements."), "README.md").decode()
    _, front, text = card.split("---\n", 2)
    front = yaml.safe_load(front)
    assert front["license"] == "cc-by-4.0"
    assert front["task_categories"] == ["text-classification"]
    assert front["configs"][0]["data_files"][1] == {"split": "validation", "path": "dev.parquet"}
    assert "Only *short* statements." in text
    assert "| train | 40 | 8 |" in text
    assert front["source_datasets"] == ["extended"]
    assert all(words in text for words in ("a (plain, train)", *about.values()))
    assert "--tasks dynabench_nli_r1 --include_path ." in text


def test_rows_for_training_have_their_json_read(closed):
    row = next(read_split_rows(released(closed), "train"))
    assert row["context"].keys() == {"premise"}
    assert row["input_json"]["label"] == row["label"]
    assert row["output_json"]["label"] == "neutral"


def test_the_command_releases_and_tells_progress(closed, capsys):
    call_command("release_round", "nli", "1", "--test", "9", "--seed", "4")
    out = capsys.readouterr().out
    assert "nli-round1-v1: train" in out
    assert "test 9" in out
    assert " 90%" in out
    with pytest.raises(CommandError):
        call_command("release_round", "nli", "1")
    with pytest.raises(CommandError, match="no round 7"):
        call_command("release_round", "nli", "7")


def test_the_command_says_why_nothing_was_made(closed, monkeypatch):
    monkeypatch.setattr(release, "write_cards", lambda *args: 1 / 0)
    with pytest.raises(CommandError, match=r"nli-round1-v1 .* ZeroDivisionError"):
        call_command("release_round", "nli", "1")


# Pages
