"""What ``phase``'s variant with O(d) and exchangeable decoys is worth: one row in d, and keys."""

from __future__ import annotations

from sfumato.studies.phase_points import title
from sfumato.studies.rows import Results, Row, accuracy, score_row


def anonymity(_data: str, results: Results) -> list[Row]:
    """The theorem, measured: single guesses stay at (d − 1)/d of the mean record's error, rows at 1/d."""
    rows = []
    for result in (r for r in results if r["mechanism"] == "phase"):
        d = result["params"]["d"]
        floor = (d - 1) / d
        guess = result["worst"]["reconstruction"]
        scale = 1.0 / (guess["baseline"] * floor)
        low, high = guess["ci"][0] * scale, guess["ci"][1] * scale
        rows.append(score_row(f"{title(result)}: accuracy", accuracy(result)))
        rows.append(score_row(f"{title(result)}: best single guess", guess))
        name = f"{title(result)}: the same over (d − 1)/d of the mean record's"
        rows.append(Row(name, "mse ratio", "higher", None, guess["value"] * scale, (low, high)))
        listed = result["worst"]["list-reconstruction"]
        rows.append(score_row(f"{title(result)}: best of {d} guesses", listed))
        for score in (s for s in result["attacks"] if s["threat"] == "row" and s["primary"]):
            rows.append(score_row(f"{title(result)}: which row ({score['attack']})", score))
        for threat in ("reidentification", "result"):
            for name, score in result["worst"].items():
                if name.split(":")[0] == threat:
                    rows.append(score_row(f"{title(result)}: {threat}", score))
    return rows


def keys(_data: str, results: Results) -> list[Row]:
    """Accuracy against the angle between the right key and the one used, and with a key drawn at random."""
    rows = []
    for result in results:
        curve = result.get("wrong_key")
        if not curve:
            continue
        for angle, read in zip(curve["angles"], curve["curve"], strict=True):
            name = f"{title(result)}: {angle / 3.141592653589793:.2f} π off"
            rows.append(Row(name, "accuracy", "higher", None, read["accuracy"], tuple(read["ci"])))
        name, uniform = f"{title(result)}: a key drawn at random", curve["uniform"]
        interval = uniform["ci"][0], uniform["ci"][1]
        rows.append(Row(name, "accuracy", "lower", None, uniform["accuracy"], interval, majority=curve["chance"]))
    return rows
