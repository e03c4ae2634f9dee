"""What a board's judge and the owners' own metrics said of each answer of a run."""

from collections.abc import Sequence

from evaluation.judges.llm_judges.selectors import compute_answer_score, read_answers_to_judge
from evaluation.models import CustomMetric, CustomOutcome, EvaluationRun, LlmJudge, LlmVerdict
from leaderboard.models import Snapshot
from tasks.config.schema import CUSTOM_PREFIX, LLM_JUDGE

KEYS_PER_QUERY = 500


class JudgedReader:
    """Reads the numbers behind the columns of a snapshot that no metric of ours computes."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Find the judge and the versions of metrics that the snapshot names."""
        task, self._judge, self._customs = snapshot.task, None, dict[str, CustomMetric]()
        for column in snapshot.table.get("metrics", ()):
            name = column["name"]
            if name == LLM_JUDGE and "judge" in column:
                self._judge = self._find_judge(snapshot, column["judge"]["name"])
            elif name.startswith(CUSTOM_PREFIX):
                own_name = name.removeprefix(CUSTOM_PREFIX)
                for metric in task.custom_metrics.filter(name=own_name, number=column["version"]):
                    self._customs[name] = metric

    def _find_judge(self, snapshot: Snapshot, name: str) -> LlmJudge | None:
        judge = LlmJudge.objects.filter(task=snapshot.task, name=name).first()
        if judge is not None:
            # In memory only: the questions were those of the configuration at that time.
            judge.task = snapshot.task
            judge.task.config_text = snapshot.config_text or judge.task.config_text
        return judge

    def read(self, run: EvaluationRun) -> dict[str, list[float | None]]:
        """Return a number (0-1) for each answer of a run, by column.

        None stands for an answer of which nothing was said. A query for each metric, and one for
        each 500 answers if the board has a judge.
        """
        columns: dict[str, list[float | None]] = {}
        if self._judge is not None:
            columns[LLM_JUDGE] = self._read_judge(self._judge, run)
        for name, metric in self._customs.items():
            outcome = CustomOutcome.objects.filter(metric=metric, run=run).first()
            if outcome is not None and not outcome.failure:
                columns[name] = _read_floats(outcome.values)
        return columns

    def _read_judge(self, judge: LlmJudge, run: EvaluationRun) -> list[float | None]:
        answers = list(read_answers_to_judge(judge, run))
        keys = [question.key for answer in answers for question in answer.questions]
        verdicts = _read_some_verdicts(judge, keys)
        scores = []
        for answer in answers:
            said = [verdicts.get(question.key) for question in answer.questions]
            scores.append(compute_answer_score(judge.task.config, answer, said))
        return scores


def _read_some_verdicts(judge: LlmJudge, keys: Sequence[str]) -> dict[str, bool]:
    """Return the judge's verdicts on the questions with these keys."""
    verdicts: dict[str, bool] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        some_keys = keys[start : start + KEYS_PER_QUERY]
        rows = LlmVerdict.objects.filter(judge=judge, key__in=some_keys)
        verdicts |= dict(rows.values_list("key", "is_correct"))
    return verdicts


def _read_floats(data: bytes | memoryview) -> list[float | None]:
    """Return stored numbers of four bytes each, which are little-endian on every machine."""
    import numpy as np  # not in each web process

    return [*np.frombuffer(data, dtype="<f4").tolist()]
