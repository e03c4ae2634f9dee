"""A task's configuration, from its text to checked frozen objects. Pure: no Django, no database.

All rooms import this package; it imports none of them. Importing it registers the field types.
"""

from tasks.config import field_types as field_types
