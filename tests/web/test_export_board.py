"""A board as records of Every Eval Ever, checked by the schema of its makers."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from datetime import timedelta

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.utils import timezone
from jsonschema_rs import Draft7Validator
from rdflib import RDF, Graph, Literal

from core.days import get_today
from evaluation.isolation.inference.elsewhere import iterate_answer_lines
from evaluation.models import Dataset, EvaluationRun, EvaluationSet
from leaderboard.board.croissant_solutions import name_set
from leaderboard.board.every_eval_ever import build_records
from leaderboard.board.query import MODES
from leaderboard.board.tables import build_public_table
from leaderboard.management.commands import export_board
from leaderboard.snapshots.services import take_snapshot
from tasks.models import Round
from tests.support.compared_models import answered, rows_of, task, version  # noqa: F401
from tests.support.croissant_graphs import CR, SCHEMA, list_breaches, read_graph
from tests.support.evaluations import accepted_model

pytestmark = pytest.mark.data


@pytest.fixture
def schemas(data):
    """The validators of records and of answers."""
    found = {}
    for name in ("eval", "instance_level_eval"):
        path = data / "schemas" / f"every-eval-ever-{name}.schema.json"
        found[name] = Draft7Validator(json.loads(path.read_text()))
    return found


@pytest.fixture
def models(task, version):
    """A model of the hub and an anonymous one, with answers on a set whose labels a release has."""
    round = Round.objects.create(task=task, number=1, state="released")
    version.dataset = Dataset.objects.create(round=round, version=1, state="done", options={})
    version.save()
    known = accepted_model(
        task, name="Known one", kind="hub", source="lab/known-model", is_published=True
    )
    hidden = accepted_model(
        task, name="Nameless", kind="hub", source="lab/secret-model", is_published=True,
        anonymous_until=get_today() + timedelta(days=9),
    )  # fmt: skip
    answered(known, version, lambda n: n % 4)
    answered(hidden, version, lambda n: n % 2)
    return known, hidden


def exported(folder, **options):
    """The records and the answers in the files, by the model's name."""
    call_command("export_board", "nli", output=folder, **options)
    records, answers = {}, {}
    for path in folder.rglob("*.json"):
        record = json.loads(path.read_text())
        records[record["model_info"]["name"]] = record
        if about := record.get("detailed_evaluation_results"):
            lines = (folder / about["file_path"]).read_text().splitlines()
            answers[record["model_info"]["name"]] = list(map(json.loads, lines))
    return records, answers


def test_every_file_is_valid_and_equals_the_board(models, task, schemas, tmp_path):
    records, answers = exported(tmp_path)
    table = build_public_table(task)
    assert len(records) == len(table["rows"]) == 2
    for record in records.values():
        assert list(schemas["eval"].iter_errors(record)) == []
    for row in table["rows"]:
        record = records[row["model"]]
        scores = {
            result["metric_config"]["metric_name"]: result["score_details"]
            for result in record["evaluation_results"]
        }
        cell = row["sets"]["round-1"]["accuracy"]
        assert scores["accuracy"]["score"] == cell["value"]
        interval = scores["accuracy"]["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (cell["low"], cell["high"])
        error = scores["accuracy"]["uncertainty"]["standard_error"]["value"]
        assert error == pytest.approx((cell["high"] - cell["low"]) / 3.92)
    for name, rows in answers.items():
        record = records[name]
        assert all(list(schemas["instance_level_eval"].iter_errors(row)) == [] for row in rows)
        assert record["detailed_evaluation_results"]["total_rows"] == len(rows) == 240
        # The answers give the score that the record states.
        right = sum(row["evaluation"]["is_correct"] for row in rows) / len(rows)
        results = {
            result["evaluation_result_id"]: result for result in record["evaluation_results"]
        }
        (result_id,) = {row["evaluation_result_id"] for row in rows}
        assert results[result_id]["score_details"]["score"] == pytest.approx(100 * right)
        assert {row["evaluation_id"] for row in rows} == {record["evaluation_id"]}


def test_a_hub_model_has_its_id_and_an_anonymous_one_gives_nothing_away(models, tmp_path):
    records, _ = exported(tmp_path)
    assert records["Known one"]["model_info"]["id"] == "lab/known-model"
    everything = "".join(path.read_text() for path in tmp_path.rglob("*.json*"))
    assert "secret-model" not in everything
    assert "Nameless" not in everything


@pytest.mark.parametrize("secret", ["sealed", "private_test", "stays", "hidden"])
def test_answers_leave_only_with_published_labels(models, version, tmp_path, secret):
    if secret == "sealed":
        version.dataset = None
    elif secret == "private_test":
        version.dataset.options["private_test"] = True
        version.dataset.save()
    elif secret == "stays":
        EvaluationSet.objects.update(may_leave=False)
    else:
        EvaluationSet.objects.update(access="hidden")
    version.save()
    if secret == "hidden":  # nothing is left on the public board
        with pytest.raises(CommandError):
            exported(tmp_path)
        return
    records, answers = exported(tmp_path)
    assert len(records) == 2
    assert answers == {}
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_second_export_replaces_the_first_and_one_model_comes_alone(models, tmp_path):
    exported(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    exported(tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    records, _ = exported(tmp_path / "one", model=str(models[0].pk))
    assert list(records) == ["Known one"]


def test_a_snapshot_is_exported_as_it_was_taken(models, task, version, schemas, tmp_path):
    snapshot = take_snapshot(task=task, actor=None)
    other = accepted_model(task, name="Later", is_published=True)
    answered(other, version, lambda n: True)
    records, _ = exported(tmp_path, snapshot=snapshot.number)
    assert "Later" not in records
    assert len(records) == 2


def test_the_board_and_its_snapshots_offer_the_records_as_a_file(client, models, task, schemas):
    take_snapshot(task=task, actor=None)
    for address in ("/t/nli/leaderboard/", "/t/nli/leaderboard/snapshots/1/"):
        answer = client.get(address, {"format": "every-eval-ever"})
        assert answer.status_code == 200, address
        lines = answer.getvalue().decode().splitlines()
        assert len(lines) == 2
        assert all(list(schemas["eval"].iter_errors(json.loads(line))) == [] for line in lines)


def test_sets_are_problems_that_models_solve(models, task, tmp_path):
    call_command("export_board", "nli", "--to", "croissant-tasks", output=tmp_path)
    graph = Graph()
    files = sorted(tmp_path.rglob("*.jsonld"))
    for path in files:
        graph += read_graph(json.loads(path.read_text()))
    assert list_breaches(graph) == []
    problems = set(graph.subjects(RDF.type, CR.TaskProblem))
    assert {graph.value(each, SCHEMA.isBasedOn) for each in solutions_in(graph)} == problems
    table = build_public_table(task)
    assert len(list(solutions_in(graph))) == len(table["rows"]) == 2
    [board_set] = table["sets"]
    for row in table["rows"]:
        [solution] = graph.subjects(
            SCHEMA.name, Literal(f"{row['model']} on {name_set(board_set)}")
        )
        evaluation = graph.value(solution, CR.evaluation)
        values = {
            str(graph.value(result, CR.metric)): float(graph.value(result, CR.value))
            for result in graph.objects(evaluation, CR.evaluationResults)
        }
        cells = row["sets"][board_set["name"]].items()
        assert values == {name: cell["value"] for name, cell in cells if cell["value"] is not None}
    assert "secret-model" not in "".join(path.read_text() + str(path) for path in files)


def test_inspect_reads_the_answers_and_scores(models, task, version, tmp_path):
    from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample

    call_command("export_board", "nli", "--to", "inspect", output=tmp_path)
    paths = sorted(tmp_path.rglob("*.eval"))
    logs = [read_eval_log(str(path)) for path in paths]
    assert len(list_eval_logs(str(tmp_path), recursive=True)) == len(logs) == 2
    cells = [row["sets"]["round-1"]["accuracy"] for row in build_public_table(task)["rows"]]
    values = sorted(cell["value"] for cell in cells)
    for path, log in zip(paths, logs, strict=True):
        assert (log.status, len(log.samples)) == ("success", version.size)
        [score] = log.results.scores
        accuracy = score.metrics["accuracy"].value
        graded = [sample.scores[score.name].value for sample in log.samples]
        assert accuracy == pytest.approx(sum(s == 1 for s in graded) / len(graded), abs=0.01)
        assert any(100 * accuracy == pytest.approx(value) for value in values)
        first = read_eval_log_sample(str(path), log.samples[0].id)
        assert first.output.completion == log.samples[0].messages[-1].text
        # Our own reader of such logs takes the same answers.
        lines = map(json.loads, iterate_answer_lines(task.config, path))
        answers = {line["id"]: line["output"]["label"] for line in lines}
        assert answers == {sample.id: sample.output.completion for sample in log.samples}
    assert "secret-model" not in "".join(map(str, paths))
    before = [path.read_bytes() for path in paths]
    call_command("export_board", "nli", "--to", "inspect", output=tmp_path)
    assert [path.read_bytes() for path in paths] == before


def solutions_in(graph):
    return graph.subjects(RDF.type, CR.TaskSolution)


def test_what_cannot_be_exported_is_refused(task, models, tmp_path):
    for wrong in ({"snapshot": 9}, {"model": "x"}):
        with pytest.raises(CommandError):
            exported(tmp_path, **wrong)
    assert not list(tmp_path.rglob("*"))


def test_the_hubs_own_library_reads_what_a_models_repository_gets(models, task, tmp_path):
    from huggingface_hub import ModelCard, parse_eval_result_entries
    from huggingface_hub.repocard_data import model_index_to_eval_results

    EvaluationSet.objects.update(source="round", round=task.rounds.get())
    call_command("export_board", "nli", to="hub", dataset=["1=lab/nli-round1"], output=tmp_path)
    (row,) = [row for row in build_public_table(task)["rows"] if row["model"] == "Known one"]
    folder = tmp_path / "lab/known-model"
    text = (folder / ".eval_results/dynabench-nli.yaml").read_text()
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    assert (entry.dataset_id, entry.task_id) == ("lab/nli-round1", "dynabench_nli_r1")
    assert entry.value == row["sets"]["round-1"]["accuracy"]["value"]
    index_text = (folder / "model-index.yml").read_text()
    name, results = model_index_to_eval_results(yaml.safe_load(index_text)["model-index"])
    assert name == "Known one"
    found = {result.metric_type: result.metric_value for result in results}
    assert found["accuracy"] == entry.value
    # Pasted into a card, as the docs say.
    card = ModelCard(f"---\nlicense: mit\n{index_text}---\n# Known one\n")
    assert card.data.eval_results == results
    assert {path.name for path in tmp_path.iterdir()} == {"lab"}  # nothing of the anonymous one
    assert not (tmp_path / "lab/secret-model").exists()


@pytest.mark.parametrize("wrong", [[], ["lab/nli"], ["1=nli"], ["x=lab/nli"], ["7=lab/nli"]])
def test_the_hub_needs_the_dataset_of_each_round(models, task, tmp_path, wrong):
    EvaluationSet.objects.update(source="round", round=task.rounds.get())
    with pytest.raises(CommandError):
        call_command("export_board", "nli", to="hub", dataset=wrong, output=tmp_path)
    assert not list(tmp_path.iterdir())


def test_all_metrics_have_the_ranges_that_the_schema_requires(models, task, schemas, tmp_path):
    """Of speed, memory and the score, which the demo has, and of metrics that may be negative."""
    usage = {"examples_per_second": 12.5, "peak_bytes": 2**31, "mean_bytes": 2**30}
    EvaluationRun.objects.update(runner="docker", usage=usage)
    text = task.config_text
    for name in ("matthews_correlation", "wer"):
        text = text.replace("also: [", f"also: [{name}, ")
    task.config_text = text
    task.save()
    for run in EvaluationRun.objects.all():
        run.scores.create(metric="matthews_correlation", value=-0.2, n=240)
        run.scores.create(metric="wer", value=1.4, n=240)
    records, _ = exported(tmp_path)
    for record in records.values():
        assert list(schemas["eval"].iter_errors(record)) == []
        found = {}
        for result in record["evaluation_results"]:
            config, score = result["metric_config"], result["score_details"]["score"]
            found[config["metric_kind"]] = score
            assert float(config["min_score"]) <= score <= float(config["max_score"])
        assert {"throughput", "memory", "matthews_correlation", "wer"} <= found.keys()


@pytest.mark.parametrize("mode", MODES)
def test_the_score_has_the_range_of_its_formula(models, task, schemas, mode):
    table = {**build_public_table(task), "mode": mode}
    for row in table["rows"]:
        row["dynascore"] = {"value": 58.9, "low": 55.0, "high": 61.5}
    records = list(build_records(table, ""))
    assert len(records) == 2
    for record in records:
        assert list(schemas["eval"].iter_errors(record)) == []
        [result] = [r for r in record["evaluation_results"] if "#board#" in name_of(r)]
        highest = {"anchored": 100, "robust": "Infinity", "classic": "Infinity"}[mode]
        assert result["metric_config"]["max_score"] == highest


def name_of(result):
    return result["evaluation_result_id"]


def test_models_with_equal_names_are_all_exported(models, task, version, schemas, tmp_path):
    """Two anonymous ones, and two submissions of one model of the hub."""
    for name, source in (("Other", "lab/other"), ("Again", "lab/known-model")):
        days = timedelta(days=9 * (name == "Other"))
        model = accepted_model(
            task, name=name, kind="hub", source=source, is_published=True,
            anonymous_until=get_today() + days if days else None,
        )  # fmt: skip
        answered(model, version, lambda n: n % 3)
    rows = build_public_table(task)["rows"]
    assert len(rows) == 4
    call_command("export_board", "nli", output=tmp_path / "records")
    found = [json.loads(path.read_text()) for path in (tmp_path / "records").rglob("*.json")]
    ids = {one["model_info"]["additional_details"]["dynabench_id"] for one in found}
    assert ids == {row["id"] for row in rows}
    assert len({one["evaluation_id"] for one in found}) == 4
    known = [one for one in found if one["model_info"]["id"] == "lab/known-model"]
    assert len(known) == 2  # the id leads to the model
    for format, pattern in (("inspect", "*.eval"), ("croissant-tasks", "solutions/**/*.jsonld")):
        call_command("export_board", "nli", to=format, output=tmp_path / format)
        assert len(list((tmp_path / format).rglob(pattern))) == 4, format


def test_an_export_is_whole_or_not_there(models, task, tmp_path, monkeypatch):
    folder = tmp_path / "results"

    def stop(*_args):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(export_board, "_write_json", stop)
        with pytest.raises(CommandError):
            exported(folder)
    assert not folder.exists()
    # A killed export leaves its scratch folder, which the next one clears away.
    (folder / export_board.SCRATCH_NAME).mkdir(parents=True)
    (folder / export_board.SCRATCH_NAME / "half.json").write_text("{")
    records, _ = exported(folder)
    assert len(records) == 2
    assert not (folder / export_board.SCRATCH_NAME).exists()


def test_files_of_others_are_not_mixed_with_an_export(models, tmp_path):
    """Such as those of a model that was withdrawn after an earlier export."""
    exported(tmp_path / "results")
    before = {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.json*")}
    model = models[0]
    model.withdrawn_at = timezone.now()
    model.save()
    with pytest.raises(CommandError, match="known-model"):
        exported(tmp_path / "results")
    assert before == {path: path.read_bytes() for path in (tmp_path / "results").rglob("*.json*")}
    (tmp_path / "file").write_text("Mine.")
    with pytest.raises(CommandError):
        exported(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "Mine."
