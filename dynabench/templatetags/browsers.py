"""A template filter that names the browser of a user agent string."""

from django import template

from core.accounts.user_agents import describe_user_agent

register = template.Library()
register.filter("browser_words", describe_user_agent)
