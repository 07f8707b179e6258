import io

from rich.console import Console

import dicot.core.progress
from dicot.core.progress import Bar


def shown(monkeypatch, *, terminal: bool, patience: float, enabled: bool = True) -> str:
    out = io.StringIO()
    monkeypatch.setattr(dicot.core.progress, "PATIENCE", patience)
    monkeypatch.setattr(
        dicot.core.progress, "Console", lambda stderr: Console(file=out, force_terminal=terminal, width=100)
    )
    with Bar("work", 10, enabled) as bar:
        bar.update(4, "loss 1.5")
    return out.getvalue()


def test_shows_after_a_while_in_a_terminal(monkeypatch):
    text = shown(monkeypatch, terminal=True, patience=0)
    assert "work" in text and "4/10" in text and "loss 1.5" in text


def test_silent_when_quick_when_piped_and_when_told(monkeypatch):
    assert shown(monkeypatch, terminal=True, patience=60) == ""
    assert shown(monkeypatch, terminal=False, patience=0) == ""
    assert shown(monkeypatch, terminal=True, patience=0, enabled=False) == ""
