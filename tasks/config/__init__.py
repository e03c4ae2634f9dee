"""A task's configuration, from its text to checked frozen objects. Pure: no Django, no database.

All rooms import it; it imports none. Importing it registers the types of fields.
"""

from tasks.config import field_types as field_types
