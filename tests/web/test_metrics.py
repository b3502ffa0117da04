"""What Prometheus would read, read by Prometheus's own parser."""

import asyncio

import pytest

pytest.importorskip("fastapi", reason="needs crossgaze[serve]")
pytest.importorskip("lancedb", reason="needs crossgaze[search]")

from prometheus_client.parser import text_string_to_metric_families

from web_parts import QUERY, client_of, make_world


def samples(client):
    text = client.get("/metrics").text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_not_by_what_clients_make_up(tmp_path):
    with client_of(make_world(tmp_path, 3)) as client:
        client.get("/search", params={"q": QUERY})
        client.get("/search", params={"q": "zebra"})
        for uid in (1, 2):
            client.get(f"/images/{uid}/thumbnail")
        for number in range(5):
            client.get(f"/made/up/{number}")
        client.request("BREW", "/images")
        found = samples(client)

        def count(route, method="GET", status="200"):
            labels = (("method", method), ("route", route), ("status", status))
            return found[("crossgaze_requests_total", *labels)]

        assert count("/search") == 1
        assert count("/search", status="422") == 1
        assert count("/images/{uid}/thumbnail") == 2
        assert count("none", status="404") == 5
        assert count("/images", method="other", status="405") == 1
        assert not any("made" in str(key) for key in found)
        assert found[("crossgaze_photographs",)] == 3
        assert found[("crossgaze_waiting",)] == 0
        assert found[("crossgaze_thumbnail_bytes",)] > 0
        assert found[("crossgaze_step_seconds_count", ("step", "rank"))] == 1
        assert found[("crossgaze_request_seconds_count", ("route", "/search"))] == 2


def test_two_services_in_one_process_count_apart(tmp_path):
    index = make_world(tmp_path, 1)
    with client_of(index) as one, client_of(index) as other:
        one.get("/health")
        assert not any("/health" in str(key) for key in samples(other))


def test_who_leaves_in_the_middle_of_a_picture_is_gone_and_no_failure(tmp_path, caplog):
    messages = [
        {"type": "http.request", "body": b"half a pict", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    with client_of(make_world(tmp_path, 1)) as client:
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": "/search",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1"), (b"content-length", b"1000")],
        }
        asyncio.run(client.app(scope, receive, send))
        found = samples(client)
        assert client.app.state.service.uploads.taken == 0
    assert sent == []
    assert caplog.text == ""
    labels = (("method", "POST"), ("route", "/search"))
    assert found[("crossgaze_requests_total", *labels, ("status", "0"))] == 1
