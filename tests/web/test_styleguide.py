"""The style guide, for developers."""


def test_the_style_guide_shows_each_kind_of_chart(client, settings, db):
    settings.DEBUG = True
    page = client.get("/styleguide/").text
    kinds = ("sparkline", "swatch series-1", "figure lines with-ends")
    kinds += ("figure rows", "figure columned days", "figure plane")
    assert [kind for kind in kinds if f'<svg class="{kind}"' not in page] == []
    assert 'class="bars"' in page
    assert "win-2" in page
    settings.DEBUG = False
    assert client.get("/styleguide/").status_code == 404
