"""Writing by the API."""


def error(response, status, code):
    assert response.status_code == status, response.content
    found = response.json()["error"]
    assert found["code"] == code
    return found


def configure(task, words, instead_of=""):
    text = task.config_text
    assert instead_of in text
    task.config_text = text.replace(instead_of, words) if instead_of else f"{text}\n{words}\n"
    task.save(update_fields=["config_text"])
