"""The style guide, for developers."""


def test_the_style_guide_shows_each_kind_of_chart(client, settings, db):
    settings.DEBUG = True
    page = client.get("/styleguide/").text
    kinds = ("chart", "chart columned", "whisker", "sparkline", "swatch series-1")
    assert [kind for kind in kinds if f'<svg class="{kind}"' not in page] == []
    assert 'class="bars"' in page
    assert "heat-3" in page
    settings.DEBUG = False
    assert client.get("/styleguide/").status_code == 404
