"""An input for an amount of money, drawn by `templates/components/money_input.html`."""

from typing import Any

from django import forms


class MoneyInput(forms.NumberInput):
    """An input for an amount, with its currency beside it."""

    template_name = "components/money_input.html"

    def __init__(self, currency: str) -> None:
        super().__init__(attrs={"step": "any", "min": "0"})
        self.currency = currency

    def get_context(self, *args: Any) -> dict[str, Any]:
        context = super().get_context(*args)
        context["widget"]["currency"] = self.currency
        return context
