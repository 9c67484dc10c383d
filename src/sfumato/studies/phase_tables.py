"""Tables 1 to 4 and Figures 3 to 5 of the ``phase`` paper.

Claims are put to the published scheme alone. The paper's attackers see *one* message; what several messages of one
record give away stands beside it, as an attack that the paper has not thought of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sfumato.core.intervals import mean_interval
from sfumato.studies.papers import paper
from sfumato.studies.phase_points import PAPERS_CUT, PUBLISHED, answered, title
from sfumato.studies.rows import (
    Results,
    Row,
    attack_score,
    difference,
    each_of,
    highest,
    lowest,
    quotient,
    ratio,
    remainder,
    score_row,
)
from sfumato.studies.verdicts import Asked, Setting

Result = Mapping[str, Any]
Score = Mapping[str, Any]
Best = Callable[[Result], Score | None]
"""The score of a point that is compared; None where it has none."""
Way = tuple[str, Best, Setting]

STRATEGIES = {"strategy 1": "inverse-critic", "strategy 2": "inverse-residual"}
"""The paper's attackers; against baselines both are the second, a decoder of what was sent."""
_SEVERAL = ("inverse-average", "inverse-intersect")
"""Attacks on several messages of one record."""
_COLUMNS = {
    "split": "original",
    "split-extra": "additional layers",
    "split-noisy-gamma-0.2": "γ = 0.2",
    "split-noisy-gamma-0.5": "γ = 0.5",
    "split-noisy-gamma-1": "γ = 1",
    PUBLISHED: "ours",
    PAPERS_CUT: "ours",
}
_WEAKER = 0.03
"""An original network that errs so much more than the paper's settles nothing about accuracy."""
_MARGIN = 0.05
"""What "cannot" leaves: five points, or five per cent."""


def utility_and_privacy(data: str, results: Results) -> list[Row]:
    """Tables 1 and 2."""
    return [
        *(_error(data, result) for result in results),
        *(row for result in _published(results) for row in _accuracies(data, result, results)),
        *(row for result in results for row in _reconstructions(data, result)),
        *(row for result in _published(results) for row in _hidden(result, results)),
        *(row for result in _published(results) for row in _factors(data, result, results)),
        *(row for result in _published(results) for row in _label(result)),
    ]


def table3(data: str, results: Results) -> list[Row]:
    """The angle of a critic, and how often the record's row is told from its decoys'."""
    rows = []
    for result in results:
        published = _is_published(result)
        printed = paper("phase").figure_or_none("Table 3", _key(data, result), "angle") if published else None
        score = attack_score(result, "key-angle", "angle")
        if score is not None:
            asked = Asked("phase-angle", "above", math.pi / 4) if published else None
            rows.append(score_row(f"{title(result)}: angle", score, paper=printed, asked=asked))
        folded = attack_score(result, "key-angle", "angle-folded")
        if folded is not None:
            rows.append(score_row(f"{title(result)}: angle, opposite ones counted as one", folded))
        settings: dict[str, Setting] = {"rows-critic": "paper", "rows-decode": "adaptive", "rows-key": "adaptive"}
        for attack, setting in settings.items():
            told = attack_score(result, attack, "rate")
            if told is not None:
                guessed = 1 / result["params"]["d"] + _MARGIN
                asked = Asked("phase-indistinguishable", "below", guessed, setting) if published else None
                rows.append(score_row(f"{title(result)}: which row ({attack})", told, asked=asked))
    return rows


def table4(data: str, results: Results) -> list[Row]:
    """Share of records not found among the candidates: by decoding (people did it in the paper) and by algebra."""
    rows = []
    for result in results:
        for attack in ("reid-decode", "reid-query", "reid-span"):
            score = attack_score(result, attack, "rate")
            if score is not None:
                column = "strategy 2" if _is_published(result) else _COLUMNS.get(result["point"], "")
                printed = paper("phase").figure_or_none("Table 4", _key(data, result), column)
                name = f"{title(result)}: {attack}"
                rows.append(_rest(name, "failure rate", "higher", printed if attack == "reid-decode" else None, score))
    for result in _published(results):
        ways: tuple[Way, ...] = (("reid-decode", _decoded, "paper"), ("best attack", _found, "adaptive"))
        for how, best, setting in ways:
            name = f"{title(result)}: {how}, failures less those of the baseline that hides most"
            asked = Asked("phase-not-reidentified", "above", 0.0, setting)
            rows += _against(name, "failure difference", result, results, best, lowest, asked)
    return rows


def likeness(_data: str, results: Results) -> list[Row]:
    """How alike the reconstructions are to the picture: Figures 3 to 5."""
    rows = []
    for result in results:
        for name, score in (
            *((f"{one} ({attack})", attack_score(result, attack, "ssim")) for one, attack in STRATEGIES.items()),
            ("best attack on one message", likest(result)),
            (f"best attack on {messages(result)}", of_several(result, "ssim", highest)),
            ("best of d guesses", attack_score(result, "list-decoder", "ssim")),
        ):
            if score is not None:
                rows.append(score_row(f"{title(result)}: {name}", score))
    for result in _published(results):
        for how, best, setting in _ways("ssim", likest):
            asked = Asked("phase-hides-more", "below", 0.0, setting)
            name = f"{title(result)}: {how}, less the baseline that hides most"
            rows += _against(name, "ssim difference", result, results, best, lowest, asked)
    return rows


def _error(data: str, result: Result) -> Row:
    printed = _printed("error rates", data, result, _COLUMNS.get(result["point"], ""))
    return _rest(f"{title(result)}: error rate", "error", "lower", printed, answered(result))


def _accuracies(data: str, result: Result, results: Results) -> list[Row]:
    """The published scheme's accuracy less the original network's, and less that of noisy features."""
    rows = []
    for other in _baselines(result, results):
        claims = {
            "split": ("phase-limited-decrease", -_largest_decrease()),
            "split-noisy": ("phase-better-than-noise", 0),
        }
        if other["mechanism"] not in claims:
            continue
        claim, bound = claims[other["mechanism"]]
        value, interval = difference((result, answered(result)), (other, answered(other)))
        asked = Asked(claim, "above", bound, unless=_too_weak(data, result, results))
        name = f"{title(result)}: accuracy less that of {other['point']}"
        rows.append(Row(name, "accuracy difference", "higher", None, value, interval, asked))
    return rows


def _largest_decrease() -> float:
    """Of Table 1: what the paper calls limited."""
    rows = paper("phase").figures["Table 1, error rates"].values()
    return round(max(row["ours"] - row["original"] for row in rows), 4)


def _too_weak(data: str, result: Result, results: Results) -> str:
    """Why accuracies settle nothing, where the original network errs far more than the paper's."""
    theirs = _printed("error rates", data, result, "original")
    original = next((one for one in _baselines(result, results) if one["mechanism"] == "split"), None)
    if theirs is None or original is None:
        return ""
    ours = 1.0 - answered(original)["value"]
    return f"the original network errs {ours:.0%}, the paper's {theirs:.0%}" if ours > theirs + _WEAKER else ""


def _reconstructions(data: str, result: Result) -> list[Row]:
    """Mean absolute error by both strategies, by the best attack on one message and by the best on several.

    Nothing for points on which no attack was run.
    """
    rows = []
    for strategy, attack in STRATEGIES.items():
        score = attack_score(result, attack, "l1")
        column = strategy if _is_published(result) else _COLUMNS.get(result["point"], "")
        if score is not None:
            printed = _printed("reconstruction errors", data, result, column)
            rows.append(score_row(f"{title(result)}: {strategy} ({attack})", score, paper=printed))
    best = _nearest(result)
    if best is not None:
        rows.append(score_row(f"{title(result)}: best attack on one message", best))
    several = of_several(result, "l1", lowest)
    if several is not None:
        rows.append(score_row(f"{title(result)}: best attack on {messages(result)}", several))
    return rows


def _hidden(result: Result, results: Results) -> list[Row]:
    """The published scheme's reconstruction errors over the most private baseline's, and over a blind guess's."""
    rows = []
    for name, best, setting in _ways("l1", _nearest):
        asked = Asked("phase-hides-more", "above", 1.0, setting)
        against = f"{title(result)}: {name}, over the baseline that hides most"
        rows += _against(against, "error ratio", result, results, best, highest, asked)
        score = best(result)
        if score is not None and score["baseline"]:
            blind = score["baseline"]
            asked = Asked("phase-not-recovered", "above", 1.0 - _MARGIN, setting)
            interval = score["ci"][0] / blind, score["ci"][1] / blind
            against = f"{title(result)}: {name}, over a guess without a message"
            rows.append(Row(against, "error ratio", "higher", None, score["value"] / blind, interval, asked))
    return rows


def _factors(data: str, result: Result, results: Results) -> list[Row]:
    """The published scheme's reconstruction errors over the original network's, beside the paper's own factor."""
    original = next((one for one in _baselines(result, results) if one["mechanism"] == "split"), None)
    plain = None if original is None else attack_score(original, STRATEGIES["strategy 2"], "l1")
    if original is None or plain is None:
        return []
    theirs = {strategy: _papers_factor(data, result, strategy) for strategy in STRATEGIES}
    least = None if None in theirs.values() else min(factor for factor in theirs.values() if factor is not None)
    ways: list[tuple[str, Score | None, float | None, float | None, Setting]] = [
        (f"{strategy} (one message)", attack_score(result, attack, "l1"), theirs[strategy], theirs[strategy], "paper")
        for strategy, attack in STRATEGIES.items()
    ]
    ways.append(("best attack on one message", _nearest(result), None, least, "adaptive"))
    ways.append((f"best attack on {messages(result)}", of_several(result, "l1", lowest), None, least, "adaptive"))
    rows = []
    for name, score, printed, factor, setting in ways:
        if score is None:
            continue
        alike = len(each_of(result, score)[0]) == len(each_of(original, plain)[0])
        same = alike and score["attack"] not in _SEVERAL  # several messages: of victims in another order
        value, interval = (ratio if same else quotient)((result, score), (original, plain))
        asked = None if factor is None else Asked("phase-by-a-factor", "above", (1.0 - _MARGIN) * factor, setting)
        full_name = f"{title(result)}: {name}, over the original network"
        rows.append(Row(full_name, "error ratio", "higher", printed, value, interval, asked, n=score.get("n")))
    return rows


def _papers_factor(data: str, result: Result, strategy: str) -> float | None:
    """How many times as large the paper's error is by this strategy as for its original network."""
    ours, original = (_printed("reconstruction errors", data, result, column) for column in (strategy, "original"))
    return None if ours is None or original is None else ours / original


def _label(result: Result) -> list[Row]:
    """What the cloud's view tells of the label, beyond a guess; of several labels, on average and of each."""
    asked = Asked("phase-result-hidden", "below", _MARGIN, "adaptive")
    scores = [score for threat, score in result["worst"].items() if threat.split(":")[0] == "result"]
    name = f"{title(result)}: label read from what the cloud sees"
    if len(scores) <= 1:
        return [score_row(name, one, asked=asked) for one in scores]
    each = [score_row(f"{title(result)}: {one['target']} read from what the cloud sees", one) for one in scores]
    return [_mean_advantage(f"{name}, mean over {len(scores)} labels", result, scores, asked), *each]


def _mean_advantage(name: str, result: Result, scores: Sequence[Score], asked: Asked) -> Row:
    """The mean over labels of what the best reader of each gets beyond the most frequent answer."""
    read, majorities, whose = [], [], None
    for worst in scores:
        same = ("attack", "target")
        score = next(
            one
            for one in result["attacks"]
            if one["metric"] == "accuracy" and all(one.get(key) == worst.get(key) for key in same)
        )
        right, whose = each_of(result, score)
        read.append(right)
        majorities.append(score["value"] - worst["value"])
    each = sum(read[1:], start=read[0]) / len(read)
    share = sum(majorities) / len(majorities)
    low, high = mean_interval(each, whose)
    n, people = scores[0].get("n"), scores[0].get("people")
    value = float(each.mean()) - share
    return Row(name, "advantage", "lower", None, value, (low - share, high - share), asked, n=n, people=people)


def _ways(metric: str, best: Best) -> list[Way]:
    """Both strategies of the paper, and the best attack on one message."""
    theirs: list[Way] = [(name, _by(attack, metric), "paper") for name, attack in STRATEGIES.items()]
    return [*theirs, ("best attack on one message", best, "adaptive")]


def _against(
    name: str,
    metric: str,
    result: Result,
    results: Results,
    best: Best,
    hides_most: Callable[[list[Score]], Score],
    asked: Asked,
) -> list[Row]:
    """The published scheme beside the baseline that hides most; nothing where one is missing.

    Over the same victims, unless the best attacks saw different ones: some search for each record, and see a few.
    """
    ours = best(result)
    others = [(other, score) for other in _baselines(result, results) if (score := best(other)) is not None]
    if ours is None or not others:
        return []
    chosen = hides_most([score for _, score in others])
    other = next(pair for pair in others if pair[1] is chosen)
    same = len(each_of(result, ours)[0]) == len(each_of(*other)[0])
    if metric == "error ratio":
        value, interval = (ratio if same else quotient)((result, ours), other)
    else:
        value, interval = (difference if same else remainder)((result, ours), other)
    if metric == "failure difference":
        value, interval = -value, (-interval[1], -interval[0])  # the scores are shares that were found
    return [Row(name, metric, "lower" if asked.side == "below" else "higher", None, value, interval, asked)]


def _by(attack: str, metric: str) -> Best:
    """One strategy; a baseline's message has no angle, so that both strategies decode it as it is."""

    def score(result: Result) -> Score | None:
        chosen = attack if result["mechanism"] == "phase" else STRATEGIES["strategy 2"]
        return attack_score(result, chosen, metric)

    return score


def _decoded(result: Result) -> Score | None:
    return attack_score(result, "reid-decode", "rate")


def _found(result: Result) -> Score | None:
    scores = [attack_score(result, attack, "rate") for attack in ("reid-decode", "reid-query", "reid-span")]
    given = [score for score in scores if score is not None]
    return highest(given) if given else None


def _nearest(result: Result) -> Score | None:
    scores = [score for score in _rebuilt(result, "l1") if score["attack"] not in _SEVERAL]
    return lowest(scores) if scores else None


def likest(result: Result) -> Score | None:
    scores = [score for score in _rebuilt(result, "ssim") if score["attack"] not in _SEVERAL]
    return highest(scores) if scores else None


def of_several(result: Result, metric: str, best: Callable[[list[Score]], Score]) -> Score | None:
    """The best attack on several messages of a record."""
    scores = [score for score in _rebuilt(result, metric) if score["attack"] in _SEVERAL]
    return best(scores) if scores else None


def messages(result: Result) -> str:
    """How many messages of a record those attacks see: the first, and its repetitions."""
    repeats = result.get("effort", {}).get("repeats")
    return "several messages of a record" if repeats is None else f"{repeats + 1} messages of a record"


def _rebuilt(result: Result, metric: str) -> list[Score]:
    return [one for one in result["attacks"] if one["threat"] == "reconstruction" and one["metric"] == metric]


def _published(results: Results) -> Sequence[Result]:
    return [result for result in results if _is_published(result)]


def _is_published(result: Result) -> bool:
    return result["point"] in (PUBLISHED, PAPERS_CUT)


def _baselines(result: Result, results: Results) -> Sequence[Result]:
    return [one for one in results if one["part"] == result["part"] and one["mechanism"] != "phase"]


def _key(data: str, result: Result) -> str:
    """The row of the paper's tables: network and data set."""
    return f"{result['part']}-{data}"


def _printed(figures: str, data: str, result: Result, column: str) -> float | None:
    """A figure of Table 1 or 2, whichever has the row; None where neither has."""
    tables = (f"Table 1, {figures}", f"Table 2, {figures}")
    found = (paper("phase").figure_or_none(table, _key(data, result), column) for table in tables)
    return next((number for number in found if number is not None), None)


def _rest(name: str, metric: str, better: Any, printed: float | None, score: Score) -> Row:
    """What a share leaves of 1."""
    low, high = score["ci"]
    value = 1.0 - score["value"]
    return Row(
        name, metric, better, printed, value, (1.0 - high, 1.0 - low), n=score.get("n"), people=score.get("people")
    )
