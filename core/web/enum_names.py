"""Names of the API schema's enumerations, where several fields have the same name."""

ENUM_NAMES = {
    "JobStateEnum": "evaluation.models.Job.State",
    "WantedStateEnum": "tasks.api.rounds.REQUESTABLE_STATES",
    "RoundStateEnum": "tasks.models.Round.State",
    "CampaignKindEnum": "dynabench.campaigns.models.Campaign.Kind",
    "CampaignStateEnum": "dynabench.campaigns.models.Campaign.State",
    "CampaignWantedStateEnum": "dynabench.campaigns.api.CAMPAIGN_STATES",
    "ModelKindEnum": "evaluation.kinds.kind_choices",
    "RuleEnum": "tasks.models.Round.Rule",
    "PolicyRuleEnum": "validation.api.policies.RULE_CHOICES",
    "ConsensusStateEnum": "validation.models.Consensus.State",
    "ReportReasonEnum": "annotation.models.Report.Reason",
    "CheckEnum": "dynabench.manage.api.CHECK_CODES",
    "OutcomeEnum": "annotation.models.Example.Outcome",
    "EndingEnum": "evaluation.api.own_workers.OWN_WORKER_OUTCOMES",
    "TaskRoleEnum": "tasks.models.TaskMember.Role",
    "DutyStateEnum": "validation.api.assignments.STATES",
    "DutyKindEnum": "tasks.models.Duty.Kind",
}
