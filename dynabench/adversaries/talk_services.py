"""A run of an adversary in a task of conversations. Each turn is a try of the log.

The search asks turn by turn, and reads logged answers when a run continues. A conversation that
fools the model is said once more from its first turn, as people say theirs, with another secret if
the task has one. Only what happens then counts. The locks are listed in docs/locking.md.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from annotation.attempts.author_answer_services import answer_undecided
from annotation.attempts.conversation_services import (
    add_opening_turns,
    build_opening_turns,
    find_stored_answer,
    get_conversation,
    list_spoken_turns,
    restart_conversation,
    say_turn,
)
from annotation.attempts.live_targets import build_model_inputs
from annotation.attempts.services import ask_targets, begin_attempt, judge_answers
from annotation.context_picking.services import assign_chosen
from annotation.models import Assignment, Attempt, Conversation, Example
from annotation.refusals import CapReached
from core.errors import Refused
from core.text.words import compose
from dynabench.adversaries.kinds.base import (
    Attack,
    Claim,
    Exchange,
    Judgement,
    Probe,
    ProbeAnswer,
    Step,
    Turn,
)
from dynabench.adversaries.models import AdversaryRun, AdversaryTry
from dynabench.adversaries.run_services import FINAL_FAILURES, POLL_SECONDS, RunSlice
from dynabench.adversaries.run_steps import (
    NO_ANSWER,
    KnownTry,
    Question,
    RunEnded,
    SliceOver,
    stop_without_model,
)
from dynabench.adversaries.selectors import hash_question
from dynabench.adversaries.talk_fit import describe_talk
from evaluation.contract import NotNow, ServerAway
from tasks.config.field_types.chat import find_text_error
from tasks.config.loading import validate_inputs
from tasks.config.values import normalise_values
from tasks.models import Context
from tasks.targets.endpoints.base import Prediction

NOT_REPEATED = "not_repeated"
"""Why a conversation was not submitted: said again, it didn't fool the model."""
INTERRUPTED = "interrupted"
"""The reason of a try whose repetition goes on later, from where it was stopped."""
State, End = AdversaryTry.State, AdversaryRun.End


class TalkSlice(RunSlice):
    """A slice of a run in a task of conversations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert self._config.talk is not None
        self._talk = self._config.talk
        self._task = describe_talk(self._config)
        self._talk_count = 0
        self._opening_turns: list[dict[str, str]] = []

    def _plan_attacks(self, rng: Random) -> Iterable[Attack]:
        return self._kind.plan_talks(self._options, self._task, rng)

    def _follow(self, attack: Attack, context: Context) -> None:
        self._talk_count += 1
        # A secret of its own, which the writing model can't know from an earlier conversation. By
        # the seed, so that a slice that repeats the search finds the logged answers.
        rng = Random(f"{self._seed} secret {self._talk_count}")
        self._opening_turns = build_opening_turns(self._talk, rng.choice)
        super()._follow(attack, context)

    def _do_step(self, step: Step, label: str, context: Context) -> ProbeAnswer:
        if isinstance(step, Turn):
            return self._answer_turn(step, label, context)
        if isinstance(step, Claim):
            return self._answer_claim(step, label, context)
        return super()._do_step(step, label, context)

    # Turns

    def _answer_turn(self, turn: Turn, label: str, context: Context) -> ProbeAnswer:
        """Return the model's answer to a turn, logged or new."""
        text = _clean_turn(turn.text)
        is_valid = not find_text_error(self._talk, text)
        if not is_valid or len(turn.earlier) >= self._task.max_turns:
            self._count_idle_probe()
            return NO_ANSWER
        # As the model reads it, with the system message and all answers so far.
        question = self._build_turn(turn, label, context)
        # Two conversations may come to the same turns, and then get the same answer.
        if question.digest in self._seen_digests:
            self._count_idle_probe()
        else:
            self._idle_count = self._fruitless_count = self._empty_count = 0
            self._seen_digests.add(question.digest)
        return self._find_or_ask(question).answer

    def _find_or_ask(self, question: Question) -> KnownTry:
        known = self._known.get(question.digest)
        if known is None or known.state == State.WAITING:
            known = self._ask(question)
            self._known[question.digest] = known
        return known

    def _build_turn(self, turn: Turn, label: str, context: Context) -> Question:
        previous = None
        if turn.earlier:
            last = turn.earlier[-1]
            # It was asked, because its answer is known.
            earlier_turn = Turn(last.said, "", turn.earlier[:-1])
            previous = self._known[self._hash_turn(earlier_turn, label, context)].pk
        inputs = self._build_inputs(turn, label)
        model_inputs = build_model_inputs(self._round, context.fields, inputs)
        return Question(
            label=label,
            probe=Probe(_clean_turn(turn.text), turn.step),
            context=context,
            inputs=inputs,
            model_inputs=model_inputs,
            digest=hash_question(label, model_inputs),
            previous=previous,
        )

    def _hash_turn(self, turn: Turn, label: str, context: Context) -> str:
        inputs = self._build_inputs(turn, label)
        return hash_question(label, build_model_inputs(self._round, context.fields, inputs))

    def _build_inputs(self, turn: Turn, label: str) -> dict[str, Any]:
        """Return a conversation up to a turn, with its system message, and the label if any."""
        turns: list[dict[str, str]] = [*self._opening_turns]
        for one in turn.earlier:
            turns.append({"role": "user", "text": _clean_turn(one.said)})
            turns.append({"role": "assistant", "text": one.answer})
        turns.append({"role": "user", "text": _clean_turn(turn.text)})
        return {self._talk.name: turns, **self._build_label(label)}

    def _build_label(self, label: str) -> dict[str, str]:
        # Only some tasks draw a label for a conversation, such as what it is to be about.
        return {self._config.goal.field: label} if self._config.goal.field else {}

    def _judge_predictions(self, question: Question, predictions: list[Prediction]) -> ProbeAnswer:
        [prediction] = predictions  # a chat has one target
        outcome = judge_answers(self._round, question.inputs, predictions)
        # Where the author decides, nothing fools before the writing model says so.
        is_fooled = not self._task.is_claimed and outcome.status == "fooled"
        text = str(prediction.output[self._config.answer_field])
        return ProbeAnswer(is_fooled, float(not is_fooled), text=text)

    def _read_tries(self, tries: QuerySet[AdversaryTry]) -> dict[str, KnownTry]:
        known: dict[str, KnownTry] = {}
        columns = ("digest", "pk", "state", "is_fooled", "outputs")
        for digest, pk, state, is_fooled, outputs in tries.values_list(*columns):
            answer = NO_ANSWER
            if outputs:
                text = str(outputs[0]["output"][self._config.answer_field])
                answer = ProbeAnswer(bool(is_fooled), float(not is_fooled), text=text)
            known[digest] = KnownTry(pk, state, answer)
        return known

    # Claims

    def _answer_claim(self, claim: Claim, label: str, context: Context) -> ProbeAnswer:
        """Say a conversation again and submit it; return whether it became an example."""
        last = claim.exchanges[-1]
        turn = Turn(last.said, "", claim.exchanges[:-1])
        try_pk = self._known[self._hash_turn(turn, label, context)].pk
        own_rows = AdversaryTry.objects.filter(pk=try_pk)
        if self._task.is_claimed:
            own_rows.update(is_fooled=True)
        # One that an earlier slice or run has submitted or given up stays so.
        if own_rows.filter(state=State.ANSWERED).exists():
            self._submit_talk(try_pk, claim, label, context)
        is_stored = own_rows.filter(state=State.STORED).exists()
        return ProbeAnswer(is_stored, float(not is_stored))

    def _submit_talk(self, try_pk: int, claim: Claim, label: str, context: Context) -> None:
        """Submit a conversation, if it fools the model once more. Each turn is a call."""
        self._check_budget()
        # Its turns are counted one by one, and some may have been said before an interruption.
        logged_try = self._take_try(try_pk, 0)
        if logged_try is None:
            return
        own_rows = AdversaryTry.objects.filter(pk=try_pk)
        # Read above: from now on only an interruption of this repetition sets it.
        own_rows.update(reason="")
        with self._log_refusals(logged_try):
            chosen_context = context if self._reads(context) else self._take_turn()
            assignment = assign_chosen(
                annotator=self._adversary.annotator, context=chosen_context, goal=label
            )
            with self._keep_if_stopped(own_rows):
                failure = self._say_again(assignment, logged_try, claim.exchanges)
                inputs = None if failure else self._judge_again(assignment, claim, label)
            if inputs is None:
                own_rows.update(state=State.REFUSED, reason=failure or NOT_REPEATED)
                return
            if problems := validate_inputs(self._config, chosen_context.fields, inputs):
                raise Refused(next(iter(problems.values()))[0])
            attempt, must_ask = begin_attempt(
                annotator=self._adversary.annotator,
                assignment=assignment,
                key=logged_try.key,
                inputs=inputs,
                by_program=True,
            )
            # The answer is in the conversation, so no model is asked.
            self._log_attempt(logged_try, ask_targets(attempt) if must_ask else attempt)

    @contextmanager
    def _keep_if_stopped(self, own_rows: QuerySet[AdversaryTry]) -> Iterator[None]:
        """Note that a try's conversation goes on later, if the work stops here."""
        try:
            yield
        except (RunEnded, SliceOver, NotNow, ServerAway, CapReached) as stop:
            own_rows.filter(state=State.REPEATING).update(state=State.ANSWERED, reason=INTERRUPTED)
            # A cap of the hour is no fault of the conversation, which a later run submits.
            if isinstance(stop, CapReached):
                raise RunEnded(End.CAPS) from None
            raise

    def _say_again(
        self, assignment: Assignment, logged_try: AdversaryTry, exchanges: Sequence[Exchange]
    ) -> str:
        """Say all turns of a conversation to the model; return why it gave no answer, or "".

        Begins anew, except that it goes on with an interrupted repetition of this try. Raises
        RunEnded, SliceOver, NotNow, ServerAway, LeaseLost and Refused.
        """
        texts = [_clean_turn(one.said) for one in exchanges]
        said_texts = _list_said(get_conversation(assignment))
        is_own = logged_try.reason == INTERRUPTED and said_texts == texts[: len(said_texts)]
        if not is_own:
            restart_conversation(assignment=assignment)
            said_texts = []
        uses = self._list_uses(logged_try)
        for position in range(len(said_texts), len(texts)):
            self._check_budget()
            self._reserve_calls(1)
            conversation = get_conversation(assignment)
            conversation = say_turn(
                assignment=assignment,
                text=texts[position],
                turn_index=len(conversation.turns),
                seconds=settings.LIVE_DEADLINE_SECONDS,
            )
            # If too many wait already, `say_turn` returns at once.
            while conversation.is_asking:
                self._heartbeat.beat()
                time.sleep(POLL_SECONDS)
                conversation.refresh_from_db()
            # The same turn costs as much as the first time, which the conversation does not say.
            self._add_use(*uses[position])
            if conversation.failure in FINAL_FAILURES:
                return conversation.failure
            # The turn waits there unanswered, and a later slice sends it again.
            if len(_list_said(conversation)) != position + 1:
                code = conversation.failure or "slow"
                stop_without_model(code, code, None)
        return ""

    def _list_uses(self, logged_try: AdversaryTry) -> list[tuple[int, float]]:
        """Return the tokens and the cost of each turn up to this try, from the log."""
        uses = []
        one: AdversaryTry | None = logged_try
        # A query for each turn, of which there are a few.
        while one is not None:
            uses.append((one.tokens, one.cost))
            one = one.previous
        return uses[::-1]

    def _judge_again(
        self, assignment: Assignment, claim: Claim, label: str
    ) -> dict[str, Any] | None:
        """Return the inputs of the repeated conversation; None if it does not fool the model."""
        *asked_turns, answer = list_spoken_turns(get_conversation(assignment).turns)
        # Each turn of the adversary is followed by an answer, so they alternate.
        texts = [turn["text"] for turn in [*asked_turns, answer]]
        exchanges = tuple(map(Exchange, texts[::2], texts[1::2]))
        values: Mapping[str, Any] | None = claim.values
        # The same answers need no second judgement.
        if self._task.is_claimed and exchanges != _clean_exchanges(claim.exchanges):
            values = self._ask_judgement(claim.judge(exchanges))
        if values is None:
            return None
        inputs = normalise_values(
            self._config.input,
            {self._talk.name: asked_turns, **self._build_label(label), **values},
        )
        prediction = find_stored_answer(assignment, asked_turns, self._entries)
        # With the secret of this conversation, which the rule compares.
        outcome = judge_answers(self._round, add_opening_turns(assignment, inputs), [prediction])
        is_fooled = self._task.is_claimed or outcome.status == "fooled"
        return inputs if is_fooled else None

    def _ask_judgement(self, judgement: Judgement) -> Mapping[str, Any] | None:
        """Return what the writing model tells of a conversation; None if nothing is wrong."""
        answer: ProbeAnswer | None = None
        while True:
            try:
                prompt = next(judgement) if answer is None else judgement.send(answer)
            except StopIteration as end:
                values: Mapping[str, Any] | None = end.value
                return values
            answer = self._consult(prompt)

    def _store(self, logged_try: AdversaryTry, example: Example) -> None:
        super()._store(logged_try, example)
        # What a person answers on the next page, the adversary has claimed already.
        if example.outcome == Example.Outcome.UNDECIDED and self._task.is_claimed:
            answer_undecided(example=example, model_right=False)

    def _close_interrupted(self, interrupted_try: AdversaryTry) -> None:
        """Decide what a dead worker's repetition becomes: an example, lost, or to be continued."""
        annotator_id = self._adversary.annotator_id
        # Everything was said, and the worker died while the example was stored.
        if Attempt.objects.filter(annotator=annotator_id, key=interrupted_try.key).exists():
            super()._close_interrupted(interrupted_try)
            return
        conversation = Conversation.objects.filter(
            assignment__annotator=annotator_id,
            assignment__round=self._round,
            assignment__left_at=None,
        ).first()
        state, reason = State.ANSWERED, INTERRUPTED
        # It died while the model answered, and no turn is asked twice.
        if conversation and conversation.asked_at is not None:
            state, reason = State.LOST, ""
        AdversaryTry.objects.filter(pk=interrupted_try.pk).update(state=state, reason=reason)


def _clean_turn(text: str) -> str:
    """Return a turn as it is stored when a person says it."""
    return compose(text).strip()


def _clean_exchanges(exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    return tuple(Exchange(_clean_turn(one.said), one.answer) for one in exchanges)


def _list_said(conversation: Conversation) -> list[str]:
    """Return the turns that the model has answered."""
    return [turn["text"] for turn in conversation.turns if turn["role"] == "user"]
