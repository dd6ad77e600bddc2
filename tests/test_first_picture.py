"""README's picture is what the code says now."""

import runpy
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "docs" / "img" / "first.py"


@pytest.mark.long
def test_the_picture_shows_what_the_code_answers_and_plans() -> None:
    made = runpy.run_path(str(PROGRAM))["picture"]()
    assert PROGRAM.with_suffix(".svg").read_text(encoding="utf-8") == made, "run `python docs/img/first.py`"


def test_the_picture_fetches_nothing() -> None:
    text = PROGRAM.with_suffix(".svg").read_text(encoding="utf-8")
    assert text.count("http") == text.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert "url(#" in text
    assert not any(word in text for word in ("@font-face", "@import", "<script", "<image"))
