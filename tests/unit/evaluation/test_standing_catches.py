"""Which catches of a released round still fool a newly trained model."""

from pathlib import Path

from evaluation.task_shape import build_trainable_shape
from evaluation.training.standing_catches import CATCH_ID, count_standing_catches, mark_catch
from tasks.config.loading import load_config

NLI = Path(__file__).parents[3] / "tasks" / "official" / "nli" / "task.yaml"
LINE = {"uid": "u1", "validated": True, "model_wrong": True, "by_program": False}
ROW = {"text": "Soup.", "label": "positive"}


def test_only_confirmed_catches_of_people_are_marked():
    assert mark_catch(ROW, LINE) == {**ROW, CATCH_ID: "u1"}
    for change in ({"validated": False}, {"model_wrong": None}, {"by_program": True}):
        assert mark_catch(ROW, LINE | change) == ROW


def test_those_that_still_fool_are_told_by_their_ids():
    config = load_config(NLI.read_text())
    shape = build_trainable_shape(config)
    right, wrong = shape.labels[0], shape.labels[1]
    row = {"premise": "It rains.", "hypothesis": "It is wet.", "label": right}
    rows = [row | {CATCH_ID: "u1"}, row | {CATCH_ID: "u2"}, row]
    counted = count_standing_catches(config.verdict, shape, rows, [right, wrong, wrong])
    assert counted == {"catches": 2, "standing": ["u2"]}
