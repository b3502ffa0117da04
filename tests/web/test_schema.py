"""OpenAPI against the service: whatever a client makes up, never a 5xx, always what is promised."""

import json
from collections import Counter
from contextlib import contextmanager

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
from web_parts import TOKEN, make_world, running

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
SENTENCES = ("a red dog runs in the snow", "the cat", "xyzzy and a blue cat .")
REFUSED = (400, 404, 409, 413, 422)
OPEN = {"POST /login", "GET /health"}  # answered without a token
KEPT = ("limit", "offset", "side", "stream", "v")  # of a query: no value of these finds nothing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("world")


@contextmanager
def served(folder, **options):
    index = make_world(folder, 4)
    (folder / "lines.txt").write_text("a dog runs\nthe blue dog\n")
    index.add_sentences(folder / "lines.txt")
    asker = Asker(asking_parts.answerer())
    config = ServeConfig(folders=(folder / "photos",), **options)
    with running(create_app(index, config, asker=asker)) as address:
        yield address  # over HTTP: what a socket lets through counts


@pytest.fixture(scope="module")
def api(folder):
    with served(folder) as address:
        yield schemathesis.openapi.from_url(f"{address}openapi.json", timeout=60)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Give the same behind a token; its photographs lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("guarded")
    with served(folder, token=TOKEN, rate=0) as address:
        shown = {"Authorization": f"Bearer {TOKEN}"}
        yield (
            schemathesis.openapi.from_url(f"{address}openapi.json", headers=shown, timeout=60),
            folder,
        )


def few(examples, *, same=True):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=same,
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
def try_all(api, photos, examples, *, same=True, headers=None):
    """Send what the schema admits to every operation; returns how often each answered how."""
    seen = Counter()
    for found in api.get_all_operations():
        operation = found.ok()

        @few(examples, same=same)
        @given(case=cases(operation, photos))
        def check(case):
            response = case.call(timeout=60, headers=headers)
            seen[case.operation.label, response.status_code] += 1
            assert response.status_code < 500, (case.as_curl_command(), response.text)
            case.validate_response(response, checks=CHECKS)

        check()
    return seen


def codes_of(seen, label):
    return {code for one, code in seen if one == label}


def test_no_request_makes_the_server_fail(api, folder):
    seen = try_all(api, folder / "photos", 12)
    for label in {label for label, _ in seen}:
        codes = codes_of(seen, label)
        assert any(200 <= code < 300 for code in codes), (label, codes)
    assert sum(seen[one] for one in seen if one[1] == 422) > 5  # not everything was accepted


def test_behind_a_token_the_same_holds_with_it_and_nothing_is_told_without(guarded):
    api, folder = guarded
    with_it = try_all(api, folder / "photos", 4, headers={"Authorization": f"Bearer {TOKEN}"})
    without = try_all(api, folder / "photos", 4, headers={"Authorization": "Bearer not the one"})
    labels = {label for label, _ in with_it}
    for label in labels - OPEN:
        assert 401 not in codes_of(with_it, label), label
        assert codes_of(without, label) == {401}, label
    assert codes_of(without, "GET /health") == {200}
    assert 401 in codes_of(without, "POST /login")  # no token that is made up is the one


def break_schema(api, method, path, examples, *, same=True, headers=None):
    """Send what the schema forbids; returns how often each status was the answer."""
    seen = Counter()

    @few(examples, same=same)
    @given(case=api[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def check(case):
        response = case.call(timeout=60, headers=headers)
        seen[response.status_code] += 1
        assert response.status_code < 500, (case.as_curl_command(), response.text)
        if response.status_code >= 400:
            assert response.json()["error"]

    check()
    return seen


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/search"),
        ("POST", "/search"),
        ("GET", "/images"),
        ("GET", "/images/{uid}"),
        ("GET", "/images/{uid}/sentences"),
        ("GET", "/images/{uid}/thumbnail"),
        ("GET", "/images/{uid}/file"),
        ("GET", "/explain"),
        ("POST", "/ask"),
        ("POST", "/index"),
        ("POST", "/login"),
    ],
)
def test_requests_that_break_the_schema_are_refused_in_words(api, method, path):
    """Numbers that are texts, bounds overstepped, fields left out or of another kind."""
    seen = break_schema(api, method, path, 25)
    # Not every breach can be told: in an address, a number is a text as well.
    assert sum(seen[code] for code in REFUSED) > 5, seen


def test_every_operation_that_takes_something_is_among_those_that_are_broken(api):
    (marked,) = test_requests_that_break_the_schema_are_refused_in_words.pytestmark
    given_ = {
        (method.upper(), path)
        for path, methods in api.raw_schema["paths"].items()
        for method, what in methods.items()
        if what.get("parameters") or what.get("requestBody")
    }
    assert set(marked.args[1]) == given_


@pytest.mark.slow
def test_hundreds_of_requests_that_are_new_each_time(api, folder):
    try_all(api, folder / "photos", 300, same=False)
    (marked,) = test_requests_that_break_the_schema_are_refused_in_words.pytestmark
    for method, path in marked.args[1]:
        seen = break_schema(api, method, path, 300, same=False)
        assert sum(seen[code] for code in REFUSED) > 5, seen


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
