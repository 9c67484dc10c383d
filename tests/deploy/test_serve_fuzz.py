"""A few hundred malformed requests; ``python -m benchmarks serve-fuzz`` sends all of them."""

from __future__ import annotations

import os

from benchmarks.serve_fuzz import run


def test_malformed_requests_are_refused_in_one_sentence_and_stop_nothing() -> None:
    found = run(requests=int(os.environ.get("SFUMATO_FUZZ", "450")))
    assert found["holds"], found["figures"]
    statuses = found["figures"]["answers by status"]
    assert statuses["200"] > 0
    assert statuses["400"] > statuses["200"]
