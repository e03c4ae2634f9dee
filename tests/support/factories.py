"""Rows for tests."""

import factory
from factory.django import DjangoModelFactory

from core.accounts.models import Annotator, User
from tasks.contexts.files import hash_context
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.services import OFFICIAL_FOLDER

PASSWORD = "correct horse battery"


class UserFactory(DjangoModelFactory):
    class Meta:
        model = User
        skip_postgeneration_save = True

    email = factory.Sequence(lambda n: f"person{n}@example.com")

    @classmethod
    def _create(cls, model_class, *args, **kwargs):
        user = model_class.objects.create_user(password=PASSWORD, **kwargs)
        Annotator.objects.create(user=user)
        return user


def importing(arguments):
    """The arguments of `import_examples`; a task that it makes gets an owner."""
    if "--create" not in arguments or "--owner" in arguments:
        return [*map(str, arguments)]
    owner = User.objects.filter(email="importer@example.com").first()
    owner = owner or UserFactory(email="importer@example.com")
    return [*map(str, arguments), "--owner", owner.email]


class TaskFactory(DjangoModelFactory):
    """An official task by its code, without rounds."""

    class Meta:
        model = Task

    code = "nli"
    config_text = factory.LazyAttribute(
        lambda t: (OFFICIAL_FOLDER / t.code / "task.yaml").read_text()
    )
    name = factory.LazyAttribute(lambda t: t.code)


class RoundFactory(DjangoModelFactory):
    class Meta:
        model = Round

    task = factory.SubFactory(TaskFactory)
    number = 1
    state = Round.State.OPEN


class ContextFactory(DjangoModelFactory):
    class Meta:
        model = Context

    round = factory.SubFactory(RoundFactory)
    fields = factory.Sequence(lambda n: {"premise": f"Person {n} opened the shop at nine."})
    digest = factory.LazyAttribute(lambda c: hash_context(c.fields))


def scripted_target(round: Round, name: str = "scripted", **options) -> TargetModel:
    """A target in the round's loop that answers by rule."""
    target = TargetModel.objects.create(
        task=round.task, name=name, adapter="scripted", url="http://scripted.test", options=options
    )
    RoundTarget.objects.create(round=round, target=target, position=round.round_targets.count())
    return target
