"""The explorer's HTTP interface asked at random, by what it says of itself: nothing breaks, nothing is undocumented.

DICOT_REQUESTS sets how many requests each question gets in each way (default 6).
"""

import os
import re
import warnings
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dicot.explorer.workspace import ExplorerWorkspace
from tests.explorer.conftest import PORT, TOKEN, page_files

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
pytest.importorskip("fastapi", reason="fastapi is not installed")

REQUESTS = int(os.environ.get("DICOT_REQUESTS", "6"))
BASE = f"http://127.0.0.1:{PORT}"
FREE = {"/", "/favicon.ico", "/assets/{name}"}  # what the page needs before it has the token
QUESTIONS = [
    ("get", "/"),
    ("get", "/favicon.ico"),
    ("get", "/assets/{name}"),
    ("get", "/api/about"),
    ("get", "/api/points"),
    ("get", "/api/columns/{name}"),
    ("get", "/api/series"),
    ("get", "/api/context"),
    ("get", "/api/neighbours"),
    ("get", "/api/find"),
    ("get", "/api/labels"),
    ("post", "/api/labels"),
    ("post", "/api/undo"),
    ("get", "/api/suggest"),
    ("post", "/api/classify"),
    ("post", "/api/export"),
]


@pytest.fixture
def app(workspace: ExplorerWorkspace) -> Any:
    from dicot.explorer.app import create_app

    return create_app(workspace, TOKEN, PORT, page_files())


@pytest.fixture
def session(app: Any) -> Iterator[Any]:
    """One client for all requests of a test: a new one for each takes most of the time."""
    from schemathesis.python import asgi

    with asgi.get_client(app) as client:
        yield client


def test_every_question_is_asked(app: Any) -> None:
    said = [(method, path) for path, methods in app.openapi()["paths"].items() for method in methods]
    assert sorted(said) == sorted(QUESTIONS)


def cases_of(app: Any, method: str, path: str, mode: str) -> Any:
    """Requests to one question: such as its description allows, or such as it does not; None where all are allowed."""
    schema = schemathesis.openapi.from_dict(app.openapi())
    operation = schema[path][method]
    if mode == "negative" and not (operation.query or operation.body):
        return None
    return operation.as_strategy(generation_mode=getattr(schemathesis.GenerationMode, mode.upper()))


def sensible(case: Any, n: int) -> Any:
    """Rows and recordings that are there: what no description says, and nobody finds by chance."""
    if isinstance(case.query, dict) and isinstance(rows := case.query.get("rows"), str):
        case.query["rows"] = re.sub(r"[0-9]+", lambda found: str(int(found[0]) % n), rows)
    if isinstance(case.query, dict) and isinstance(name := case.query.get("recording"), str):
        case.query["recording"] = ("ann", "bob", name)[len(name) % 3]
    return case


def ask(strategy: Any, test: Any) -> None:
    """Ask what the strategy draws, the same on every run."""
    quiet = settings(
        max_examples=REQUESTS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what stands between the generator and the application
        quiet(given(strategy)(test))()


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("method", "path"), QUESTIONS)
def test_answers_are_those_that_are_documented(
    app: Any, workspace: ExplorerWorkspace, session: Any, method: str, path: str, mode: str
) -> None:
    strategy = cases_of(app, method, path, mode)
    if strategy is None:
        pytest.skip("there is nothing to ask wrongly")
    if mode == "positive":
        strategy = strategy.map(lambda case: sensible(case, len(workspace)))
    headers = {"X-Dicot-Token": TOKEN}
    checks = schemathesis.checks

    def asked(case: Any) -> None:
        response = case.call(base_url=BASE, session=session, headers=headers, app=app)
        kept = [checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
        kept += [checks.response_schema_conformance, checks.response_headers_conformance]
        kept += [checks.negative_data_rejection]
        case.validate_response(response, checks=kept)

    ask(strategy, asked)


@pytest.mark.parametrize(("method", "path"), [one for one in QUESTIONS if one[1] not in FREE])
def test_without_the_token_nothing_is_answered(app: Any, session: Any, method: str, path: str) -> None:
    tokens = cycle([None, "", "another", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper()])

    def asked(case: Any) -> None:
        token = next(tokens)
        headers = {} if token is None else {"X-Dicot-Token": token}
        response = case.call(base_url=BASE, session=session, headers=headers, app=app)
        assert response.status_code == 403 and "token" in response.json()["detail"]

    ask(cases_of(app, method, path, "positive"), asked)
