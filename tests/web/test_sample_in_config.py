"""The sample that people judge, set in the task's file."""

import pytest

from dynabench.manage.wizard.forms import JudgingForm
from tasks.config.judging import Sample
from tasks.config.loading import check_config, dump_config, load_config
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.config_changes import check_change
from tasks.models import RoundTarget, TargetModel, TaskMember
from tasks.rounds.loop import RoundError
from tasks.rounds.states import set_round_state
from tasks.targets.sample_judges import INSTRUCTED_ADAPTER
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write
from tests.unit.tasks.config_texts import FULL
from validation.consensus.consensus import Policy
from validation.consensus.vote_draws import DEFAULT_MIN_CHANCE, DEFAULT_PROMPT, DrawRule
from validation.decisions.consensus_rows import build_configured_draw
from validation.decisions.services import change_policy
from validation.judging.draw_counts import read_draw_state
from validation.judging.draw_services import change_draw
from validation.judging.judge_models import ask_judge_models
from validation.judging.queue_services import fill_queue
from validation.models import QueueItem, RoundPolicy, VoteDraw

EXAMPLES = 30
DECIDE = """\
version: 1
name: Advice
goal: {text: Decide}
context: [{name: case, type: long_text}]
input: [{name: advice, type: multiclass, labels: [doctor, rest]}]
output: [advice]
verdict: {type: decide, fields: [advice]}
metrics: {main: accuracy}
limits: {tries_per_context: 1}
validation: {sample: {judge: judge}}
"""
SURE = {"label": "neutral", "prob": {"neutral": 0.95, "entailment": 0.05}}


def add_sample(text, sample="{judge: judge, min_chance: 0.2}"):
    start = "validation: {mode: label,"
    assert start in text
    return text.replace(start, f"validation: {{sample: {sample}, mode: label,")


def make_judge(task, name="judge"):
    return TargetModel.objects.create(
        task=task, name=name, adapter="scripted", url="http://scripted.test", options=SURE
    )


@pytest.fixture
def configured(nli):
    """An open round of a task whose file names a judge model."""
    nli.task.config_text = add_sample(nli.task.config_text)
    nli.task.save()
    nli.judge = make_judge(nli.task)
    return nli


def test_the_file_sets_what_the_form_sets():
    config = load_config(add_sample(FULL))
    assert config.validation.sample == Sample(judge="judge", min_chance=0.2)
    assert load_config(dump_config(config)) == config
    assert load_config(add_sample(FULL, "{judge: judge}")).validation.sample == Sample(
        judge="judge", min_chance=DEFAULT_MIN_CHANCE
    )
    assert load_config(FULL).validation.sample is None


@pytest.mark.parametrize(
    ("sample", "path"),
    [
        ("{judge: judge, min_chance: 0}", "validation.sample.min_chance"),
        ("{judge: judge, min_chance: 1.5}", "validation.sample.min_chance"),
        ("{judge: judge, min_chance: many}", "validation.sample.min_chance"),
        ('{judge: ""}', "validation.sample.judge"),
        ("{min_chance: 0.2}", "validation.sample.judge"),
        ("{judge: judge, chance: 0.2}", "validation.sample.chance"),
        ("judge", "validation.sample"),
        ("{judge: judge, prompt: Be strict.}", "validation.sample.prompt"),
        ('{judge: judge, by_instruction: true, prompt: ""}', "validation.sample.prompt"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(sample, path):
    text = add_sample(FULL, sample)
    config, problems = check_config(text)
    line = next(number for number, one in enumerate(text.split("\n"), 1) if "sample" in one)
    assert config is None
    assert [(problem.path, problem.line) for problem in problems] == [(path, line)]


def test_a_key_that_decides_leaves_nothing_to_judge():
    config, problems = check_config(DECIDE)
    assert config is None
    assert ("validation.sample", "error") in [(one.path, one.severity) for one in problems]


def test_a_chat_model_judges_by_the_instruction_of_the_file(nli):
    texts = {
        "{judge: chat, by_instruction: true}": DEFAULT_PROMPT,
        "{judge: chat, by_instruction: true, prompt: Be strict.}": "Be strict.",
    }
    judge = make_judge(nli.task, "chat")
    plain_text = nli.task.config_text
    for sample, prompt in texts.items():
        nli.task.config_text = add_sample(plain_text, sample)
        nli.task.save()
        TargetModel.objects.update(adapter="scripted")
        # Other models don't read an instruction.
        assert build_configured_draw(nli) is None
        TargetModel.objects.update(adapter=INSTRUCTED_ADAPTER)
        assert build_configured_draw(nli) == DrawRule(judge.pk, DEFAULT_MIN_CHANCE, prompt)


def test_without_labels_a_chat_model_gets_an_instruction(qa):
    data = read_yaml(qa.task.config_text).data
    data["validation"] = {**data.get("validation", {}), "sample": {"judge": "chat"}}
    qa.task.config_text = dump_yaml(data)
    qa.task.save()
    judge = make_judge(qa.task, "chat")
    assert build_configured_draw(qa) is None
    TargetModel.objects.update(adapter=INSTRUCTED_ADAPTER)
    assert build_configured_draw(qa) == DrawRule(judge.pk, DEFAULT_MIN_CHANCE, DEFAULT_PROMPT)


def test_a_new_round_draws_by_the_file(configured, bob):
    for number in range(EXAMPLES):
        write(configured, bob, number)
    # Before anybody judges, and without the page of the rule.
    assert ask_judge_models() == EXAMPLES
    assert RoundPolicy.objects.get().draw_rule == DrawRule(configured.judge.pk, 0.2)
    assert {draw.chance for draw in VoteDraw.objects.all()} == {0.2}
    drawn = set(VoteDraw.objects.filter(is_drawn=True).values_list("pk", flat=True))
    assert set(QueueItem.objects.values_list("pk", flat=True)) == drawn
    assert len(drawn) < EXAMPLES


def plan_again(round):
    """Make it a round that has never opened."""
    round.state, round.opened_at = "ready", None
    round.save()


def test_a_policy_that_was_stored_before_a_round_opened_sets_no_sample(configured, alice, bob):
    plan_again(configured)
    scripted_target(configured, name="fooled", **SURE)
    # As when rows are imported before the judge model is there.
    TargetModel.objects.filter(pk=configured.judge.pk).update(name="later")
    change_policy(round=configured, owner=alice, policy=Policy(needed=5))
    imported = write(configured, bob, 0)
    assert fill_queue(round=configured) == 1
    TargetModel.objects.filter(pk=configured.judge.pk).update(name="judge")
    assert read_draw_state(configured).rule == DrawRule(configured.judge.pk, 0.2)
    set_round_state(round=configured, state="open", actor=None)
    write(configured, bob, 1)
    assert ask_judge_models() == 2
    row = RoundPolicy.objects.get()
    assert (row.draw_rule, row.policy["needed"]) == (DrawRule(configured.judge.pk, 0.2), 5)
    assert VoteDraw.objects.filter(pk=imported.pk).exists()


def test_a_change_of_the_policy_keeps_the_sample_of_the_file(configured, alice):
    change_policy(round=configured, owner=alice, policy=Policy(needed=5))
    assert RoundPolicy.objects.get().draw_rule == DrawRule(configured.judge.pk, 0.2)


def test_a_sample_that_an_owner_removed_before_the_round_opened_stays_removed(configured, alice):
    plan_again(configured)
    change_draw(round=configured, owner=alice, rule=None)
    scripted_target(configured, name="fooled", **SURE)
    set_round_state(round=configured, state="open", actor=None)
    ask_judge_models()
    assert RoundPolicy.objects.get().draw_rule is None


def test_a_sample_that_comes_into_the_file_of_a_judged_round_is_for_later_rounds(nli, alice):
    change_policy(round=nli, owner=alice, policy=Policy(needed=5))
    ask_judge_models()
    nli.task.config_text = add_sample(nli.task.config_text)
    nli.task.save()
    make_judge(nli.task)
    ask_judge_models()
    assert RoundPolicy.objects.get().draw_rule is None


def test_the_page_shows_the_rule_of_the_file_and_can_change_it(configured, as_alice, alice):
    TaskMember.objects.create(task=configured.task, user=alice, role="editor")
    page = as_alice.get("/own/nli/rounds/1/sample/")
    assert page.context["state"].judge_name == "judge"
    assert page.context["form"].initial["min_chance"] == "0.2"
    change_draw(round=configured, owner=alice, rule=None)
    assert fill_queue(round=configured) == 0
    # The round has its own rule now, whatever the file says.
    assert RoundPolicy.objects.get().draw_rule is None


def test_a_judge_that_the_task_lacks_is_named(nli):
    text = add_sample(nli.task.config_text)
    nli.state = "draft"
    nli.save()
    config, problems = check_change(nli.task, text)
    (found,) = [one for one in problems if one.path == "validation.sample.judge"]
    # It may come later, as when a folder of files is applied.
    assert (config is not None, found.severity) == (True, "warning")
    assert "judge" in text.split("\n")[found.line - 1]
    nli.state = "open"
    nli.save()
    config, problems = check_change(nli.task, text)
    assert (config, problems[0].path, problems[0].severity) == (
        None,
        "validation.sample.judge",
        "error",
    )
    judge = make_judge(nli.task)
    assert check_change(nli.task, text)[0] is not None
    # Authors try to fool it in this round.
    RoundTarget.objects.create(round=nli, target=judge)
    assert check_change(nli.task, text)[0] is None


def test_a_judge_that_is_gone_stops_no_other_change_of_the_file(configured):
    configured.judge.delete()
    text = configured.task.config_text
    config, problems = check_change(configured.task, f"# A note.\n{text}")
    found = [one.severity for one in problems if one.path == "validation.sample.judge"]
    assert (config is not None, found) == (True, ["warning"])
    # A sample that differs needs its model.
    assert check_change(configured.task, text.replace("0.2}", "0.3}"))[0] is None


def test_a_round_without_the_judge_of_the_file_does_not_open(configured):
    configured.state = "ready"
    configured.save()
    scripted_target(configured, name="fooled", **SURE)
    TargetModel.objects.filter(pk=configured.judge.pk).update(name="renamed")
    with pytest.raises(RoundError):
        set_round_state(round=configured, state="open", actor=None)
    TargetModel.objects.filter(pk=configured.judge.pk).update(name="judge")
    assert set_round_state(round=configured, state="open", actor=None).state == "open"


def test_the_list_before_opening_names_the_missing_judge(configured, client):
    configured.state = "ready"
    configured.opened_at = None
    configured.save()
    client.force_login(UserFactory(is_superuser=True))

    def list_gaps():
        return [part.gap for part in client.get("/own/nli/").context["launch"]]

    assert "sample_judge" not in list_gaps()
    configured.judge.delete()
    assert "sample_judge" in list_gaps()


def test_the_wizard_keeps_the_sample():
    data = {"validation": {"sample": {"judge": "judge"}, "mode": "label"}}
    form = JudgingForm(
        data, {"mode": "label", "rule": "n-equal", "needed": "4", "judge_not_fooled": "0.2"}
    )
    assert form.is_valid(), form.errors
    form.write(data)
    assert data["validation"]["sample"] == {"judge": "judge"}
