"""OpenAPI against the service: whatever a client makes up, never a 5xx, always what is promised."""

import json
from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import asking_parts
from crossgaze.web.app import create_app
from crossgaze.web.asker import Asker
from crossgaze.web.settings import ServeConfig
from web_parts import make_world, running

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
SENTENCES = ("a red dog runs in the snow", "the cat", "xyzzy and a blue cat .")
KEPT = ("limit", "offset", "side", "stream", "v")  # of a query: no value of these finds nothing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("world")


@pytest.fixture(scope="module")
def api(folder):
    index = make_world(folder, 4)
    (folder / "lines.txt").write_text("a dog runs\nthe blue dog\n")
    index.add_sentences(folder / "lines.txt")
    asker = Asker(asking_parts.answerer())
    app = create_app(index, ServeConfig(folders=(folder / "photos",)), asker=asker)
    with running(app) as address:  # over HTTP: what a socket lets through counts
        yield schemathesis.openapi.from_url(f"{address}openapi.json")


def few(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )


@st.composite
def cases(draw, operation, photos):
    """Draw what the schema admits, every other time about something that is there."""
    case = draw(operation.as_strategy())
    if not draw(st.booleans()):
        return case
    uid, words = draw(st.integers(1, 4)), draw(st.sampled_from(SENTENCES))
    case.query = {name: value for name, value in case.query.items() if name in KEPT}
    if case.path_parameters:
        case.path_parameters = {"uid": uid}
    match case.method, case.path:
        case "GET", "/search":
            case.query |= draw(st.sampled_from([{"q": words}, {"like": uid}]))
        case "POST", "/search":
            case.body = (photos / f"{uid - 1:02}.png").read_bytes()
        case "GET", "/explain":
            case.query = {"id": uid, "q": words}
        case "POST", "/ask":
            question = draw(st.sampled_from(asking_parts.QUESTIONS))
            case.body = case.body | {"id": uid, "question": question}
        case "POST", "/index":
            case.body = {"folder": str(photos)}
    return case


# By hand, as schemathesis's own plugin does not know the newest pytest.
def test_no_request_makes_the_server_fail(api, folder):
    seen = Counter()
    for found in api.get_all_operations():
        operation = found.ok()

        @few(12)
        @given(case=cases(operation, folder / "photos"))
        def check(case):
            response = case.call(timeout=60)
            seen[case.operation.label, response.status_code] += 1
            assert response.status_code < 500, (case.as_curl_command(), response.text)
            case.validate_response(response, checks=CHECKS)

        check()
        codes = {code for label, code in seen if label == operation.label}
        assert any(200 <= code < 300 for code in codes), (operation.label, codes)
    assert sum(seen[one] for one in seen if one[1] == 422) > 5  # not everything was accepted


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/search"), ("GET", "/images"), ("GET", "/explain"), ("POST", "/ask")],
)
def test_requests_that_break_the_schema_are_refused_in_words(api, method, path):
    """Numbers that are texts, bounds overstepped, fields left out or of another kind."""
    seen = Counter()

    @few(25)
    @given(case=api[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def check(case):
        response = case.call(timeout=60)
        seen[response.status_code] += 1
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        if response.status_code >= 400:
            assert response.json()["error"]

    check()
    # Not every breach can be told: in an address, a number is a text as well.
    assert sum(seen[code] for code in (400, 404, 409, 413, 422)) > 5, seen


def test_every_address_has_words_and_examples(api):
    document = api.raw_schema
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            assert what["description"], (method, path)
            assert what["tags"], (method, path)
            for one in what.get("parameters", ()):
                whole = "$ref" in one["schema"]  # one of a few values
                assert whole or one["schema"].get("examples"), (method, path, one["name"])
    for name, schema in document["components"]["schemas"].items():
        for field, what in schema.get("properties", {}).items():
            # What is made of other schemas has their examples.
            whole = "$ref" in json.dumps(what) or "const" in what
            assert whole or what.get("examples"), (name, field)
    parameters = {one["name"]: one for one in document["paths"]["/search"]["get"]["parameters"]}
    assert parameters["q"]["schema"]["examples"] == ["two dogs in the snow"]
    assert parameters["limit"]["schema"]["maximum"] == 100
    assert set(document["paths"]["/search"]["post"]["requestBody"]["content"]) >= {"image/jpeg"}
