"""Small charts inside of tables and tiles."""

from django import template

from dynabench.lib.charts import heat, sparkline, whisker

register = template.Library()
register.filter("heat", heat)
register.filter("sparkline", sparkline)
register.filter("whisker", whisker)
