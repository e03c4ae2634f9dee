"""Ask a chat model to judge an example by an instruction, with what people who judge it see.

It sees neither the author's label, where people don't, nor any name or id of a person or a model.
"""

from collections.abc import Mapping, Sequence
from math import exp
from string import ascii_uppercase
from typing import Any, NamedTuple

from annotation.models import Example
from annotation.rules.prompt import list_fields_to_read
from annotation.writing.result_panel import format_answer
from tasks.config.criteria import Criterion
from tasks.config.schema import TaskConfig
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Round, TargetModel
from tasks.targets.connect import build_chooser_endpoint
from tasks.targets.endpoints.base import Prediction
from tasks.targets.spending_services import MeteredEndpoint, Payer
from validation.consensus.choice_scores import compute_choice_score
from validation.consensus.claims import find_accepting_vote, find_label_field, is_about_model
from validation.consensus.criteria import build_criteria_vote, list_judged_criteria
from validation.consensus.vote_draws import JudgeAnswer
from validation.judging.blind import build_blind_inputs
from validation.judging.wording import build_choices, build_legend
from validation.models import Verdict

ANSWER_SECONDS = 30.0
OUTPUT = "choice"
MODEL_ANSWER = "model_answer"
CRITERION = "criterion"
UNCLEAR = f"verdict:{Verdict.CANNOT_TELL}"
CRITERION_CHOICES = (
    ("met", "Met"),
    ("not_met", "Not met"),
    ("cannot_tell", "Unclear"),
)


class JudgeQuestion(NamedTuple):
    """A question to a judge. inputs: what it reads. choices: (value, text) of each answer."""

    text: str
    inputs: Mapping[str, Any]
    choices: Sequence[tuple[str, str]]

    @property
    def codes(self) -> tuple[str, ...]:
        """Return a short code for each choice.

        One token has one probability, and texts such as “No, the model is wrong” are hard to write
        without a change.
        """
        if len(self.choices) <= len(ascii_uppercase):
            return tuple(ascii_uppercase[: len(self.choices)])
        return tuple(str(number) for number in range(1, len(self.choices) + 1))

    def build_prompt(self, instruction: str) -> str:
        """Return the instruction with the question and its choices."""
        lines = [instruction, "", f"Question: {self.text}"]
        for code, (_value, text) in zip(self.codes, self.choices, strict=True):
            lines.append(f"{code}: {text}")
        return "\n".join(lines)


class Choice(NamedTuple):
    """What a judge chose. probability: None if the server doesn't say it."""

    value: str
    probability: float | None


def ask_by_instruction(
    judge: TargetModel, instruction: str, round: Round, example: Example
) -> JudgeAnswer:
    """Ask a chat model to judge an example, and return what it says of the author.

    One call, or one for each criterion. Without a score if the author has given no label, so that
    there is nothing to confirm. Makes calls, so use it outside any transaction. Raises
    EndpointError; the answer is one of the choices, or an error.
    """
    config = round.task.config
    field = find_label_field(config)
    # A call would cost, and its answer could be compared with nothing.
    if field and not example.inputs.get(field):
        return JudgeAnswer(None)
    # People judge these one by one, so the judge does, too.
    if list_judged_criteria(config, example.outcome, example.inputs):
        return JudgeAnswer(_score_criteria(judge, instruction, round, example))
    question = build_question(round, example)
    choice = _ask(judge, instruction, round, question)
    # A try without a claim is confirmed by either verdict, but only a wrong model is a catch.
    vote = find_accepting_vote(config, example.outcome, example.inputs.get(field or ""))
    confirming = f"verdict:{Verdict.INCORRECT}"
    if vote:
        confirming = f"label:{vote.label}" if vote.label else f"verdict:{vote.verdict}"
    return JudgeAnswer(
        compute_choice_score(
            is_confirming=choice.value == confirming,
            is_unclear=choice.value == UNCLEAR,
            probability=choice.probability,
            choice_count=len(question.choices) - 1,
        )
    )


def build_question(
    round: Round, example: Example, criterion: Criterion | None = None
) -> JudgeQuestion:
    """Return the question about an example, or about one criterion of its answer.

    It is the question on the page of people who judge, with the same texts and choices.
    """
    config = round.task.config
    inputs = _list_texts(round, example)
    if criterion is None:
        return JudgeQuestion(build_legend(config, example), inputs, build_choices(config, example))
    # Without points, which people who judge don't see either.
    inputs[CRITERION] = criterion.text
    question = f"Does <{MODEL_ANSWER}> meet <{CRITERION}>?"
    return JudgeQuestion(question, inputs, CRITERION_CHOICES)


def _list_texts(round: Round, example: Example) -> dict[str, Any]:
    """Return what people who judge the example read, by field; media as models read them."""
    config = round.task.config
    context = list_fields_to_read(config, example.context.fields)
    values = context | build_blind_inputs(config, example)
    texts = {name: _format_value(config, name, value) for name, value in values.items()}
    texts = prepare_for_models(config, round.task, texts)
    if is_about_model(config, example.outcome):
        outputs = list(example.target_outputs.all())
        for number, output in enumerate(outputs, 1):
            # Which model gave it, and whether it counts as fooled, isn't said.
            name = MODEL_ANSWER if len(outputs) == 1 else f"{MODEL_ANSWER}_{number}"
            texts[name] = format_answer(config, output.output)
    return texts


def _format_value(config: TaskConfig, name: str, value: Any) -> Any:
    # Conversations and candidates stay lists, which become JSON. Spans and numbers become texts.
    if isinstance(value, list) or config.get_component(name).is_media:
        return value
    return config.display(name, value)


def _score_criteria(
    judge: TargetModel, instruction: str, round: Round, example: Example
) -> float | None:
    """Return the probability that the answer's verdict by its criteria confirms the author."""
    config = round.task.config
    assert config.verdict.type == "criteria"
    criteria = list_judged_criteria(config, example.outcome, example.inputs)
    choices = [
        _ask(judge, instruction, round, build_question(round, example, criterion))
        for criterion in criteria
    ]
    vote = build_criteria_vote(config.verdict, criteria, [choice.value for choice in choices])
    probabilities = [one.probability for one in choices if one.probability is not None]
    return compute_choice_score(
        is_confirming=vote == find_accepting_vote(config, example.outcome, None),
        is_unclear=vote.verdict == "cannot_tell",
        # The answer is as sure as the criterion of which the judge is least sure.
        probability=min(probabilities, default=None),
        choice_count=2,
    )


def _ask(judge: TargetModel, instruction: str, round: Round, question: JudgeQuestion) -> Choice:
    """Return the judge's choice. Raises EndpointError, also if it is none of the choices."""
    config = round.task.config
    media = {name: kind for name, kind in config.media_fields.items() if name in question.inputs}
    endpoint = build_chooser_endpoint(
        judge,
        tuple(question.inputs),
        output=OUTPUT,
        labels=question.codes,
        prompt=question.build_prompt(instruction),
        media=media,
        own_options={"logprobs": True},
    )
    # A judge costs as any other call of the round, within the same budgets.
    metered_endpoint = MeteredEndpoint(endpoint, Payer(judge, round.pk))
    (prediction,) = metered_endpoint.predict([question.inputs], deadline_seconds=ANSWER_SECONDS)
    number = question.codes.index(prediction.output[OUTPUT])
    return Choice(question.choices[number][0], _read_probability(prediction))


def _read_probability(prediction: Prediction) -> float | None:
    # In a sentence, the probability of the letter is mostly that of the words before it.
    if prediction.is_named:
        return None
    # Servers that don't say which token is which give at least that of the whole answer.
    logprob = prediction.label_logprob
    if logprob is None:
        logprob = prediction.logprob
    return None if logprob is None else exp(logprob)
