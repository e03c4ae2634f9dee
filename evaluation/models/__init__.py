"""The models of frozen datasets, training runs, evaluations, and the jobs that create them."""

from evaluation.models.allowances import Allowance
from evaluation.models.custom_metrics import CustomMetric, CustomOutcome
from evaluation.models.datasets import (
    Dataset,
    DatasetFile,
    DatasetItem,
    PseudonymKey,
    new_key,
    release_path,
)
from evaluation.models.evaluation_sets import EvaluationSet, EvaluationSetVersion
from evaluation.models.item_properties import ItemFit, ItemLanguage, ItemProperty
from evaluation.models.jobs import Job
from evaluation.models.leak_trials import LeakTrial
from evaluation.models.llm_judges import LlmJudge, LlmScore, LlmVerdict
from evaluation.models.near_copies import NearCopy
from evaluation.models.own_workers import HandedAnswers, OwnWorker, SecondOpinion
from evaluation.models.paraphrases import Paraphrase, Paraphrasing
from evaluation.models.practice import PracticeHost, PracticeRun
from evaluation.models.publications import Publication
from evaluation.models.rulers import (
    ExpectedScore,
    Ruler,
    RulerAnchor,
    RulerLink,
    RulerStanding,
)
from evaluation.models.runs import EvaluationRun, Score
from evaluation.models.short_evaluations import ShortAnswer, ShortEvaluation
from evaluation.models.submissions import Submission, TrainedRows, Upload, UploadPiece
from evaluation.models.teams import Team, TeamMember
from evaluation.models.trainings import TrainingRun
from evaluation.models.whole_rounds import WholeRoundScore

__all__ = [
    "Allowance",
    "CustomMetric",
    "CustomOutcome",
    "Dataset",
    "DatasetFile",
    "DatasetItem",
    "EvaluationRun",
    "EvaluationSet",
    "EvaluationSetVersion",
    "ExpectedScore",
    "HandedAnswers",
    "ItemFit",
    "ItemLanguage",
    "ItemProperty",
    "Job",
    "LeakTrial",
    "LlmJudge",
    "LlmScore",
    "LlmVerdict",
    "NearCopy",
    "OwnWorker",
    "Paraphrase",
    "Paraphrasing",
    "PracticeHost",
    "PracticeRun",
    "PseudonymKey",
    "Publication",
    "Ruler",
    "RulerAnchor",
    "RulerLink",
    "RulerStanding",
    "Score",
    "SecondOpinion",
    "ShortAnswer",
    "ShortEvaluation",
    "Submission",
    "Team",
    "TeamMember",
    "TrainedRows",
    "TrainingRun",
    "Upload",
    "UploadPiece",
    "WholeRoundScore",
    "new_key",
    "release_path",
]
