"""Texts in Markdown as sections with a title each."""

from core.text.markdown import render_sections

TEXT = """Read [this].

## Rules *first*

- One.

> ## Quoted

### Details

Two.

## More

[this]: https://example.org
"""


def test_each_heading_of_the_highest_level_begins_a_section():
    before, rules, more = render_sections(TEXT)
    assert (before.title, more.body) == ("", "")
    assert 'href="https://example.org"' in before.body  # defined in another section
    assert rules.title == "Rules <em>first</em>"
    assert "Quoted" in rules.body
    assert "Details</h5>" in rules.body
    assert more.title == "More"


def test_bold_lines_are_titles_where_there_is_no_heading():
    before, rules = render_sections("Read it.\n\n**Rules**\n\n**One** word, **two** words.")
    assert before.body == "<p>Read it.</p>\n"
    assert rules.title == "<strong>Rules</strong>"
    assert rules.body.count("<strong>") == 2


def test_a_text_without_titles_is_one_section():
    (only,) = render_sections("<script>x</script> One.")
    assert only.title == ""
    assert "<script" not in only.body
    assert "One." in only.body
