"""The models of this room: tasks, their rounds, targets, contexts and members."""

from tasks.models.assignments import Duty
from tasks.models.blind_judging import BlindJudging
from tasks.models.config_version import ConfigVersion
from tasks.models.contexts import Context, ContextBatch, Media
from tasks.models.contexts import _media_path as _media_path  # migrations name it here
from tasks.models.draft import TaskDraft
from tasks.models.invitation import Invitation, NoInvitations
from tasks.models.proposal import TaskProposal
from tasks.models.rounds import Round, RoundTarget, build_hidden_name
from tasks.models.targets import Generator, ModelUse, TargetFailure, TargetModel, TargetVersion
from tasks.models.task import SIMULATED_TASK_CODE, Task, TaskMember, parse_config

__all__ = [
    "SIMULATED_TASK_CODE",
    "BlindJudging",
    "ConfigVersion",
    "Context",
    "ContextBatch",
    "Duty",
    "Generator",
    "Invitation",
    "Media",
    "ModelUse",
    "NoInvitations",
    "Round",
    "RoundTarget",
    "TargetFailure",
    "TargetModel",
    "TargetVersion",
    "Task",
    "TaskDraft",
    "TaskMember",
    "TaskProposal",
    "build_hidden_name",
    "parse_config",
]
