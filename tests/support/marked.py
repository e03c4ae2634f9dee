"""A language in which every message is translated, whatever the catalogues lack."""

from gettext import NullTranslations

import pytest
from django.utils import translation
from django.utils.translation import trans_real


class Marked(NullTranslations):
    """A catalogue in which every message is translated, by marks around it."""

    def gettext(self, message):
        return f"⟦{message}⟧"

    def ngettext(self, one, many, n):
        return f"⟦{one if n == 1 else many}⟧"

    def to_language(self):
        return "eo"


@pytest.fixture
def esperanto(settings, monkeypatch):
    settings.LANGUAGES = [("en", "English"), ("eo", "Esperanto")]
    monkeypatch.setitem(trans_real._translations, "eo", Marked())
    yield
    translation.deactivate()
