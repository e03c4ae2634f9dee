"""Format Arabic numbers in the digits that our pages use, as Unicode's CLDR does for them.

Django's comma belongs to the Eastern Arabic digits. With ours it would separate thousands.
"""

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
