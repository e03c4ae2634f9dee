"""The form with which an owner releases a round."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.cards import LICENSES
from evaluation.dataset_releases.splits import SplitSizes
from evaluation.dataset_releases.statements import RAI_PROPERTIES, StatementsForm


def _make_size_field(label: Any, **kwargs: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=0, max_value=2**31 - 1, **kwargs)


class ReleaseForm(StatementsForm):
    """A form for a version's statements and licence, and for the split sizes of a first version.

    sizes: suggested sizes; None for a later version, which keeps the splits. statements: those of
    the previous version, which the form proposes again.
    """

    train = _make_size_field(
        _("Train"),
        required=False,
        help_text=_("Number of rows. Leave empty to use all rows not in dev or test."),
    )
    dev, test = _make_size_field(_("Dev")), _make_size_field(_("Test"))
    seed = _make_size_field(
        _("Random seed"), initial=0, help_text=_("The same seed gives the same splits.")
    )
    license = forms.ChoiceField(
        label=_("Licence"), choices=[(name, name.upper()) for name in LICENSES]
    )
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=5000,
        widget=forms.Textarea({"rows": 4}),
        help_text=_("Shown on the dataset card, in Markdown. What is special about this round?"),
    )
    private_test = forms.BooleanField(
        label=_("Keep the labels of the test split private"),
        required=False,
        help_text=_(
            "Everyone gets the test texts without labels. Task members get the labels too."
        ),
    )

    hold_back = forms.BooleanField(
        label=_("Hold back a fifth of the confirmed examples for six months"),
        required=False,
        help_text=_(
            "We evaluate models on these examples during that time. Then a new version "
            "publishes them."
        ),
    )

    def __init__(
        self,
        sizes: SplitSizes | None,
        data: Mapping[str, Any] | None = None,
        statements: Mapping[str, str] | None = None,
    ) -> None:
        initial: dict[str, Any] = {**(statements or {})}
        if sizes:
            initial |= {"dev": sizes.dev, "test": sizes.test}
        super().__init__(data, initial=initial, use_required_attribute=False)
        # A later version keeps the splits and the held back rows.
        if sizes is None:
            for name in ("train", "dev", "test", "seed", "hold_back"):
                del self.fields[name]

    def build_options(self, url: str) -> Options:
        """Return the valid form's values as options for `request_release`.

        url: the URL of the dataset's public page.
        """
        release_values = {
            name: value for name, value in self.cleaned_data.items() if name not in RAI_PROPERTIES
        }
        return Options(**release_values, statements=self.get_statements(), url=url)
