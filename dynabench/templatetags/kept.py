"""A template tag that caches pieces of a page that are the same for many people.

    {% load kept %}
    {% kept code=task.code answers=answers filled csrf_token=csrf_token uuid=example.uuid %}
      <form action="{% url 'validation:judge' code %}">{% csrf_token %} … {{ uuid }} … </form>
    {% endkept %}

One person's data cannot reach other people's pages: the piece only has access to the values that
its tag names. It is rendered once for each combination of the values before `filled`, in each
language.
"""

from typing import Any
from uuid import uuid4

from django import template
from django.template import Context, Node, NodeList
from django.template.base import FilterExpression, Parser, Token, token_kwargs
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString
from django.utils.translation import get_language

register = template.Library()
Values = dict[str, FilterExpression]
MAX_COMBINATIONS = 256
"""The maximum number of cached combinations per piece. Beyond it, the cache is emptied."""


class CachedNode(Node):
    """A node of a template whose output is cached by its values.

    values: hashable values with few combinations. filled_values: values that differ each time,
    which the piece may only print. The cached output contains a marker in the place of each.
    """

    def __init__(self, nodelist: NodeList, values: Values, filled_values: Values) -> None:
        self.nodelist = nodelist
        self._values = values
        self._filled_values = filled_values
        # Markers that nobody can guess, so that no text of a person holds one. They are UUIDs, so
        # that a piece can make an address with a value that is filled in.
        self._markers = {name: str(uuid4()) for name in filled_values}
        self._cached_output: dict[Any, str] = {}

    def render(self, context: Context) -> SafeString:
        """Return the cached output, with the current values of `filled` inserted."""
        values = {name: value.resolve(context) for name, value in self._values.items()}
        # With their classes: a text that is safe markup equals the same text that is not.
        key = get_language(), *((type(value), value) for value in values.values())
        text = self._cached_output.get(key)
        if text is None:
            text = self.nodelist.render(context.new(values | self._markers))
            if len(self._cached_output) >= MAX_COMBINATIONS:
                self._cached_output.clear()
            self._cached_output[key] = text
        for name, value in self._filled_values.items():
            text = text.replace(self._markers[name], conditional_escape(value.resolve(context)))
        return SafeString(text)


@register.tag("kept")
def parse_cached_block(parser: Parser, token: Token) -> CachedNode:
    """Parse `{% kept %}…{% endkept %}`, which caches the output of the block."""
    bits = token.split_contents()[1:]
    values = token_kwargs(bits, parser)
    if bits and bits.pop(0) != "filled":
        raise template.TemplateSyntaxError("Write: kept name=value … filled name=value …")
    filled_values = token_kwargs(bits, parser)
    if bits:
        raise template.TemplateSyntaxError(f"kept: {bits[0]} is no name=value.")
    nodelist = parser.parse(["endkept"])
    parser.delete_first_token()
    return CachedNode(nodelist, values, filled_values)
