"""The live view: what is there, what is new, and for whom."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_runs import reconstruction, write_run

from sfumato.core.errors import DataError, UsageError
from sfumato.report.followed_runs import news
from sfumato.report.live_view import LiveView


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep of three points: one is audited, one has begun, one has not."""
    folder = tmp_path / "s"
    write_run(folder / "points" / "a", attacks=reconstruction(0.01))
    begun = folder / "points" / "b"
    begun.mkdir()
    (begun / "config.toml").write_text("[params]\nepochs = 9\n")
    (begun / "metrics.jsonl").write_text('{"epoch": 4}\n')
    (folder / "front.json").write_text(json.dumps({"points": ["points/a", "points/b", "points/c"]}))
    return folder


@pytest.fixture
def view(sweep: Path) -> Iterator[LiveView]:
    server = LiveView([sweep])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(view: LiveView, path: str, host: str | None = None) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=5)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()


def test_the_page_is_the_report_and_may_ask_its_own_server_for_news(view: LiveView) -> None:
    status, headers, text = ask(view, "/")
    assert status == 200 and headers["Cache-Control"] == "no-store"
    assert 'data-live="state.json"' in text and "connect-src 'self'" in text and 'class="leakage' in text
    assert "connect-src" not in text.partition("connect-src 'self'")[2].partition("<style>")[0]


def test_the_news_tell_how_far_every_point_is(view: LiveView, sweep: Path) -> None:
    told = json.loads(ask(view, "/state.json")[2])
    assert [(run["name"], run["stage"], run["detail"]) for run in told["runs"]] == [
        ("s/points/a", "done", ""),
        ("s/points/b", "fitting", "epoch 4 of 9"),
        ("s/points/c", "waiting", ""),
    ]
    (sweep / "points" / "b" / "status.json").write_text('{"state": "done"}')
    assert json.loads(ask(view, "/state.json")[2])["runs"][1]["stage"] == "fitted"


def test_a_point_appears_as_soon_as_it_is_audited(view: LiveView, sweep: Path) -> None:
    before = json.loads(ask(view, "/state.json")[2])["version"]
    assert ask(view, "/")[2].count('<tr data-run="') == 1
    assert json.loads(ask(view, "/state.json")[2])["version"] == before, "nothing has changed"
    write_run(sweep / "points" / "c", "dnn", attacks=reconstruction(0.02))
    assert json.loads(ask(view, "/state.json")[2])["version"] != before
    assert ask(view, "/")[2].count('<tr data-run="') == 2


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_page_of_another_site_that_names_this_machine_gets_nothing(view: LiveView, host: str) -> None:
    for path in ("/", "/state.json"):
        status, _, text = ask(view, path, host)
        assert status == 421 and "points" not in text


def test_the_names_of_this_machine_are_answered(view: LiveView) -> None:
    assert ask(view, "/state.json", f"localhost:{view.port}")[0] == 200


@pytest.mark.parametrize("path", ["/points/a/scores.json", "/../s/front.json", "/%2e%2e/", "/state.json/x"])
def test_no_file_is_served(view: LiveView, path: str) -> None:
    status, _, text = ask(view, path)
    assert status == 404 and "mse" not in text


def test_nothing_audited_is_a_page_that_waits(tmp_path: Path) -> None:
    server = LiveView([tmp_path])
    assert b"Nothing has been audited yet" in server.page() and b"state.json" in server.page()
    write_run(tmp_path / "deep" / "r")
    assert b'class="leakage' in server.page()
    assert [run.name for run in news([tmp_path]).runs] == ["deep/r"]
    server.server_close()


def test_a_run_that_cannot_be_read_is_named_and_hides_no_other(view: LiveView, sweep: Path) -> None:
    write_run(sweep / "points" / "c")
    (sweep / "points" / "c" / "schema.json").write_text("[]")
    assert ask(view, "/")[2].count('<tr data-run="') == 1
    (sentence,) = json.loads(ask(view, "/state.json")[2])["unread"]
    assert "expected form" in sentence


def test_what_became_no_folder_of_runs_is_told_and_the_server_goes_on(view: LiveView, sweep: Path) -> None:
    stored = (sweep / "front.json").read_text()
    (sweep / "front.json").write_text('{"points": ["../outside"]}')
    status, _, text = ask(view, "/")
    assert status == 503 and "outside" in text
    (sweep / "front.json").write_text(stored)
    assert ask(view, "/")[0] == 200


def test_a_folder_that_is_not_there_and_a_port_in_use_are_one_sentence(tmp_path: Path, view: LiveView) -> None:
    with pytest.raises(DataError, match="not a folder"):
        LiveView([tmp_path / "absent"])
    with pytest.raises(UsageError, match="choose another --port"):
        LiveView([tmp_path], view.port)


def test_hostile_names_are_text_in_the_news(tmp_path: Path) -> None:
    name = "<script>alert(1)"
    write_run(tmp_path / name, "<b>")
    server = LiveView([tmp_path])
    told: dict[str, Any] = json.loads(server.news())
    assert told["runs"][0]["name"] == name, "which the page sets as text"
    assert b"<script>alert" not in server.page() and b"><b></a>" not in server.page()
    server.server_close()
