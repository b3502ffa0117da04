"""OpenAPI against the service: whatever a client makes up, never a 5xx, always what is promised."""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

import asking_parts
from crossgaze.web.app import create_app
from crossgaze.web.asker import Asker
from crossgaze.web.settings import ServeConfig
from web_parts import make_world


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    index = make_world(folder, 4)
    (folder / "lines.txt").write_text("a dog runs\nthe blue dog\n")
    index.add_sentences(folder / "lines.txt")
    asker = Asker(asking_parts.answerer())
    app = create_app(index, ServeConfig(folders=(folder / "photos",)), asker=asker)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_no_request_makes_the_server_fail(case):
    response = case.call()
    assert response.status_code < 500, response.text
    case.validate_response(
        response,
        checks=[
            schemathesis.checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ],
    )


def test_every_address_has_words_and_examples(api):
    document = api.raw_schema
    for path, methods in document["paths"].items():
        for method, what in methods.items():
            assert what["description"], (method, path)
            assert what["tags"], (method, path)
    assert document["components"]["schemas"]["Question"]["properties"]["question"]["examples"]
    parameters = {one["name"]: one for one in document["paths"]["/search"]["get"]["parameters"]}
    assert parameters["q"]["examples"]
    assert parameters["limit"]["schema"]["maximum"] == 100
    assert set(document["paths"]["/search"]["post"]["requestBody"]["content"]) >= {"image/jpeg"}
