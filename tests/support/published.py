"""Files in published layouts, for the tests of `tasks.formats`."""

from tasks.formats import FORMATS
from tasks.formats.reading import iter_record_lines


def read(path, name):
    """The rows of a file, and (place, reason) of what is wrong."""
    lines = [*iter_record_lines(path, FORMATS[name])]
    return [one.row for one in lines if one.row], [(o.position, o.error) for o in lines if o.error]


def wrong(found, *words):
    """Nothing was read; the only reason has the words."""
    rows, reasons = found
    assert rows == []
    [(_, reason)] = reasons
    assert all(word in reason for word in words), reason


def without(record, name):
    return {key: value for key, value in record.items() if key != name}
