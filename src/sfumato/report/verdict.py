"""The verdict in plain words. It says what this suite of attacks did, never more than that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.score import Score, mixed_versions
from sfumato.core.threats import CLAIM, LIST, MEMBERSHIP, RECONSTRUCTION, threat, title
from sfumato.core.usefulness import useless
from sfumato.report.audited_runs import Group, Run, by_method, in_order, most_private, owner_gain
from sfumato.report.foreign_rows import compared, leaked
from sfumato.report.guarantees import guarantee_sentence
from sfumato.report.wording import count, guesser, leak, listed, measured, metric_name, named, number, reference

_PICKED = "Each method's setting was picked on the same records that it is reported on."
_FEW_STEPS = 200  # of an attacker's network; the default effort takes 500
COMPARABLE = 0.01  # methods are compared where their accuracy is within one point of the best


@dataclass(frozen=True)
class Ranking:
    """Methods against one threat, best for the owner first."""

    heading: str
    items: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """Plain text, not yet escaped: ``lead`` paragraphs, rankings, and warnings that must not be overlooked."""

    lead: tuple[str, ...]
    rankings: tuple[Ranking, ...] = ()
    warnings: tuple[str, ...] = ()


def verdict(group: Group) -> Verdict:
    """The verdict on one run, or on several that may be compared."""
    if len(group.runs) == 1:
        return _one(group.runs[0])
    if all(run.unlinked for run in group.runs):
        return _releases(group)
    return _several(group)


def trust_warnings(runs: Sequence[Run]) -> tuple[str, ...]:
    """What must be said about claims that are refuted, and attacks that do not win even where nothing is defended."""
    warnings = [
        f"The claimed ε = {run.guarantee.epsilon:.3g} of {run.title} is refuted: canaries show "
        f"ε ≥ {number(run.worst[CLAIM].value, run.worst[CLAIM].metric)} with 95 % confidence."
        for run in runs
        if refuted(run)
    ]
    for run in runs:
        warnings += [f"{run.title}: {said}." for said in useless(run.utility, students=run.traits.synthetic)]
    mixed = mixed_versions((score.attack, score.attack_version) for run in runs for score in run.attacks)
    warnings += [
        f"Figures of {attack} come from versions {listed([str(version) for version in versions])} of the attack "
        "and are not to be compared: audit the older runs again."
        for attack, versions in mixed.items()
    ]
    precisions = sorted({run.precision for run in runs})
    if len(precisions) > 1:
        warnings.append(
            f"Networks and attackers of these runs were trained in {listed(precisions)}: differences between them may "
            "come from the precision."
        )
    hurried = [run.title for run in runs if run.attack_steps is not None and run.attack_steps < _FEW_STEPS]
    if hurried:
        warnings.append(
            f"The audit of {listed(hurried)} took little effort (as with --effort smoke): low figures of attackers who "
            "hardly tried are no evidence."
        )
    primary: dict[str, list[Score]] = {}
    for score in (score for run in runs for score in run.attacks if score.primary):
        key = _kind(score) if score.target is None else f"{_kind(score)} of {score.target}"
        primary.setdefault(key, []).append(score)
    return (*warnings, *(text for key, scores in primary.items() for text in _doubts(key, scores)))


def _doubts(kind: str, scores: Sequence[Score]) -> list[str]:
    """Why attacks of one kind may not be trusted: they lose, or were not tried, where nothing is defended."""
    won = {score.attack for score in scores if _wins(score)}
    lost = sorted({score.attack for score in scores if _wins(score) is False} - won)
    if lost and not won:
        return [
            f"The analysis of {kind} cannot be trusted: even where nothing is defended, no attack of this suite "
            f"beats a guesser who sees nothing ({listed(lost)})."
        ]
    if lost:
        verb, them = ("does", "it") if len(lost) == 1 else ("do", "them")
        return [
            f"{kind.capitalize()}: {listed(lost)} {verb} not beat the guesser where nothing is defended; "
            f"a good figure against {them} says nothing."
        ]
    if not won:
        return [
            f"The analysis of {kind} has no undefended control: it was not shown that these attacks can win at all."
        ]
    return []


def _wins(score: Score) -> bool | None:
    """Whether the attack beats its baseline where there is no defence; None if that was not measured."""
    if score.baseline is None or score.own_control is None:
        return None
    return _worse(score.own_control, score.baseline, score)


def _threat_sentences(run: Run, key: str) -> list[str]:
    """What the best attack on one threat got, beside what a guesser and an undefended release give."""
    score = run.worst[key]
    if key == CLAIM:
        return _claim_sentences(run)
    peers = {s.attack for s in run.attacks if s.primary and (s.threat, s.target) == (score.threat, score.target)}
    verb = threat(score.threat).verb.format(target=score.target or "", d=run.d)
    if run.rotated and key == RECONSTRUCTION:
        verb = "rebuilds records in a single guess with"
    who = f"best of {len(peers)} {_kind(score)} attacks" if len(peers) > 1 else f"only {_kind(score)} attack"
    sentence = f"The {who} ({score.attack}) {verb} {named(score)}"
    return [f"{sentence}; {_references([score], 'attack gets', ', ')}.", _reading(score)]


def _claim_sentences(run: Run) -> list[str]:
    """The largest lower bound of ε that canaries show, held against what is claimed."""
    score, claimed = run.worst[CLAIM], run.guarantee.epsilon
    shown = f"with 95 % confidence the release is not more private than ε = {number(score.value, score.metric)}"
    first = f"An auditor who sees the noisy answers shows ({score.attack}, {score.n:,} trials): {shown}."
    if claimed is None:
        return [first]
    if refuted(run):
        return [first, f"The claimed ε = {claimed:.3g} is REFUTED."]
    return [first, f"That does not contradict the claimed ε = {claimed:.3g}; it does not prove it either."]


def refuted(run: Run) -> bool:
    """Whether canaries show more than is claimed."""
    claimed = run.guarantee.epsilon
    return CLAIM in run.worst and claimed is not None and run.worst[CLAIM].value > claimed


def _claims(runs: Iterable[Run]) -> list[str]:
    """One sentence on all claims that were held against canaries."""
    held = [run for run in runs if CLAIM in run.worst and run.guarantee.epsilon is not None]
    each = [
        f"ε ≥ {number(run.worst[CLAIM].value, run.worst[CLAIM].metric)} for {run.title} "
        f"(claimed {run.guarantee.epsilon:.3g})"
        for run in held
    ]
    return [f"Canaries show {listed(each)}."] if each else []


def threat_paragraphs(run: Run, keys: Iterable[str]) -> list[str]:
    """What the best attack on each threat got; a single guess and a list of guesses are told in one breath."""
    paragraphs: dict[str, list[str]] = {}
    for key in keys:
        place = RECONSTRUCTION if key == LIST and RECONSTRUCTION in paragraphs else key
        paragraphs.setdefault(place, []).extend(_threat_sentences(run, key))
    if RECONSTRUCTION in paragraphs:
        paragraphs[RECONSTRUCTION] += _both(run)
    return [" ".join(sentences) for sentences in paragraphs.values()]


def floor_sentences(run: Run) -> list[str]:
    """What follows from each utility label alone, whatever the mechanism."""
    return [
        f"Floor: whoever reads {score.follows} from the release and follows its correlation guesses {score.target} "
        f"with {named(score)} (a guesser {reference(score.baseline, score.metric)}). No mechanism that serves "
        f"{score.follows} as well can be below."
        for score in run.attacks
        if score.follows is not None and score.metric in ("accuracy", "r2")
    ]


def repeated_sentences(run: Run) -> list[str]:
    """What attacks on means of several releases of the same records get, a sentence for each threat and label."""
    found: dict[str, list[str]] = {}
    for score in (score for score in run.repeated if score.primary):
        what = title(score.threat if score.target is None else f"{score.threat}:{score.target}")
        leaked = f", leakage {leak(score)}" if leak(score) else ""
        found.setdefault(what, []).append(f"{score.releases} releases give {named(score)}{leaked}")
    return [
        f"{what}, if every record is released several times and the releases are averaged: {'; '.join(each)}."
        for what, each in found.items()
    ]


def _both(run: Run) -> list[str]:
    """That a single guess is half of the story where several records share a message."""
    if LIST in run.worst:
        return [
            f"Both figures count: {run.d} records share a message, and whoever cannot tell which one is meant still "
            f"has a list of {run.d}."
        ]
    return [_no_list(run)] if run.rotated else []


def _no_list(run: Run) -> str:
    return (
        f"No list of guesses was tried on {run.title}: {run.d} records share a message, and what a single guess gets "
        "does not tell how much leaks."
    )


def _one(run: Run) -> Verdict:
    audited = f", audited on {count(run.use.n, 'record')}" if run.use is not None else ""
    first = [f"Released: {run.mechanism} output for {run.data} records{audited}.", *_uses(run)]
    if run.unlinked:
        first = [f"Audited: {run.mechanism}, rows that somebody else made of the records in {run.data}.", leaked(run)]
    keys = sorted(in_order(run.worst), key=lambda key: key.partition(":")[0] not in (RECONSTRUCTION, LIST))
    told = [*threat_paragraphs(run, keys), *floor_sentences(run), *repeated_sentences(run), *_unknown(run.worst)]
    lead = [" ".join(first), *told, guarantee_sentence([run])]
    return Verdict(tuple(lead), warnings=trust_warnings([run]))


def _uses(run: Run) -> list[str]:
    """One sentence for each utility label."""
    who = "With its key the device reads" if run.rotated else "Others read"
    who = "Students of the synthetic records read" if run.traits.synthetic else who
    sentences = []
    for label in dict.fromkeys(score.target or run.main_label for score in run.utility if score.primary):
        score = run.reads(label)
        if score is not None:
            guess = "" if score.baseline is None else f" ({guesser(score)} {number(score.baseline, score.metric)})"
            read = f"{label or 'the label'} with {measured(score)} {metric_name(score.metric)}"
            sentences.append(f"{who} {read}{guess}.")
    return sentences


def _releases(group: Group) -> Verdict:
    """Releases of the same records that others made: they are compared by what they leak alone."""
    sentence, items, notes = compared(group.runs)
    lead = f"Audited: {count(len(group.runs), 'release')} that others made of the records in {group.data}. {sentence}"
    heading = "Where an attack finds more than chance, worst first, with leakage:"
    rankings = (Ranking(heading, tuple(items), tuple(notes)),) if items else ()
    return Verdict((lead, guarantee_sentence(group.runs)), rankings, trust_warnings(group.runs))


def _several(group: Group) -> Verdict:
    used = [run for run in group.runs if run.use]
    defended = [run for run in used if run.defended] or used
    lead = [f"Compared on {group.data}: {listed(list(group.methods))}, {count(len(group.runs), 'run')} in all."]
    rankings: list[Ranking] = []
    if defended:
        best = max(defended, key=lambda run: run.use_value)
        use, label = _use(best), best.main_label or "the label"
        guess = "" if use.baseline is None else f"; {guesser(use)} {number(use.baseline, use.metric)}"
        read = f"{metric_name(use.metric)} for {label} behind a defence is {measured(use)} ({best.title})"
        lead += [f"The best {read}{guess}.", *_unknown(group.threats), *_claims(group.runs)]
        rankings = [ranking for key in group.threats if key != CLAIM for ranking in _rankings(group, defended, key)]
    else:
        lead.append("No utility was measured, so the methods cannot be compared at equal use.")
    return Verdict((" ".join(lead), guarantee_sentence(group.runs)), tuple(rankings), trust_warnings(group.runs))


def _unknown(threats: Iterable[str]) -> list[str]:
    """What cannot be told because it was not tried."""
    tried = {key.partition(":")[0] for key in threats}
    if not tried:
        return ["No attack was run: nothing is known about what leaks."]
    if tried == {"attribute"}:
        return ["Only private labels were attacked: how well the records themselves can be rebuilt is not known."]
    return []


def _rankings(group: Group, defended: Sequence[Run], key: str) -> list[Ranking]:
    """At comparable accuracy; for a private label also at the most private setting of each method, if that differs."""
    attacked = [run for run in defended if key in run.worst]
    if not attacked:
        return []
    near = _comparable(attacked, key)
    ranked = [_ranking(group, attacked, near, key)]
    strongest = _strongest(attacked, key)
    if key.startswith("attribute:") and {run.name for run in strongest} != {run.name for run in near}:
        several = len(attacked) > len(strongest)
        where = "At each method’s most private setting" if several else "At any accuracy"
        notes = [_reading(strongest[0].worst[key], strongest[0].title)]
        notes += [_PICKED] if several and _PICKED not in ranked[0].notes else []
        ranked.append(Ranking(_heading(where, key), _items(strongest, key), tuple(notes)))
    return ranked


def _comparable(attacked: Sequence[Run], key: str) -> list[Run]:
    """Each method's best run for the owner, among those within one point of the best accuracy."""
    floor = max(run.use_value for run in attacked) - COMPARABLE
    return _strongest([run for run in attacked if run.use_value >= floor - 1e-9], key)


def _strongest(attacked: Sequence[Run], key: str) -> list[Run]:
    """The run of each method that leaks least, best for the owner first."""
    picked = [most_private(own, key) for own in by_method(attacked).values()]
    return sorted((run for run in picked if run is not None), key=lambda run: -owner_gain(run.judged(key)))


def _ranking(group: Group, attacked: Sequence[Run], chosen: Sequence[Run], key: str) -> Ranking:
    scores = [run.worst[key] for run in chosen]
    notes = [f"For scale: {_references(scores, 'attacks get', '; ')}."]
    raw = next((run for run in group.controls if run.raw_latent), None)
    if raw is not None and raw.use and key in raw.worst and all(run is not raw for run in chosen):
        notes.append(f"The raw latent ({raw.mechanism}): {_got(raw, key)}")
    notes.append(_reading(chosen[0].judged(key), who=chosen[0].title))
    if key == RECONSTRUCTION and any(LIST in run.worst for run in chosen):
        notes.append("Where a list of guesses was tried as well, the worse of both for the owner decides the order.")
    notes += [_no_list(run) for run in chosen if key == RECONSTRUCTION and run.rotated and LIST not in run.worst]
    notes += _against_baselines(attacked, chosen, key)
    if key == group.threats[0]:
        notes += _left_out(attacked, chosen)
        notes += [_PICKED] if any(len(group.of(run.mechanism)) > 1 for run in chosen) else []
    return Ranking(_heading("Within one point of the best accuracy", key), _items(chosen, key), tuple(notes))


def _heading(where: str, key: str) -> str:
    name, _, target = key.partition(":")
    aim = threat(name).object.format(target=target)
    return f"{where}, by what the best attack on {aim} still gets, best for the owner first:"


def _items(runs: Sequence[Run], key: str) -> tuple[str, ...]:
    """What was got from each run; says so where the interval overlaps that of the next one."""
    items = []
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        text = f"{run.title}: {_got(run, key)}"
        if following is not None and _overlap(run.judged(key), following.judged(key)):
            text += f" Its interval overlaps that of {following.mechanism}: the order of these two is not settled."
        items.append(text)
    return tuple(items)


def _got(run: Run, key: str) -> str:
    score, use = run.worst[key], _use(run)
    listed = run.worst.get(LIST) if key == RECONSTRUCTION else None
    also = f" and, with a list of {run.d} guesses, {named(listed)} by {listed.attack}" if listed is not None else ""
    return f"{named(score)} by {score.attack}{also}, at {named(use)}."


def _references(scores: Sequence[Score], attacks_get: str, between: str) -> str:
    """Baseline and control of the same metric: one figure each, or the range over all scores."""
    parts = []
    for what, values in (
        ("a guesser who sees nothing gets", [s.baseline for s in scores if s.baseline is not None]),
        (f"with no defence the best {attacks_get}", [s.control for s in scores if s.control is not None]),
    ):
        if values:
            low, high = (reference(end, scores[0].metric) for end in (min(values), max(values)))
            parts.append(f"{what} {low}" if low == high else f"{what} {low} to {high}")
    return between.join(parts) or "neither a baseline nor a control was measured"


def _left_out(runs: Sequence[Run], chosen: Sequence[Run]) -> list[str]:
    """Methods that no run of comparable accuracy has, with the best accuracy that they reach."""
    present = {run.mechanism for run in chosen}
    best = [max(own, key=lambda run: run.use_value) for name, own in by_method(runs).items() if name not in present]
    each = [f"{run.mechanism} reaches {number(run.use_value, _use(run).metric)} at most" for run in best]
    return [f"Not comparable at this accuracy: {listed(each)}."] if each else []


def _against_baselines(runs: Sequence[Run], chosen: Sequence[Run], key: str) -> list[str]:
    """A paper's claim that its mechanism hides more than a baseline, held against the fresh attacker."""
    there, picked = {run.mechanism for run in runs}, {run.mechanism: run.worst[key] for run in chosen}
    pairs = dict.fromkeys((run.mechanism, run.traits.compared_with) for run in runs)
    return [_held_against(a, b, picked) for a, b in pairs if b in there]


def _held_against(a: str, b: str, picked: Mapping[str, Score]) -> str:
    if not {a, b} <= picked.keys():
        return f"{a} and {b} have no runs of comparable accuracy: nothing can be said about their order."
    ours, theirs = picked[a], picked[b]
    if not _worse(theirs.value, ours.value, ours):
        return f"{a} is not better than {b} under the fresh attacker at comparable accuracy."
    if _overlap(ours, theirs):
        return f"{a} is not shown to be better than {b} under the fresh attacker: their intervals overlap."
    return f"{a} is better than {b} under the fresh attacker at comparable accuracy."


def _reading(score: Score, who: str | None = None) -> str:
    """What the distance to baseline and control means, in words."""
    of = f" of {who}" if who else ""
    it = who or "The release"
    if score.baseline is None:
        return f"Without a baseline the {_kind(score)} figure{of} cannot be read as a leak or as its absence."
    worst, best = score.ci if score.better_for_owner == "higher" else score.ci[::-1]
    if not _worse(best, score.baseline, score):
        return (
            f"No {_kind(score)} attack of this suite does measurably better on {who or 'it'} than a guesser who sees "
            "nothing; other attacks may."
        )
    weak = score.threat == MEMBERSHIP  # a weak attack gets little without a defence, too, and another one everything
    if score.control is not None and not weak and not _worse(score.control, worst, score):
        return f"{it} leaks to {_kind(score)} attacks as much as a release with no defence, within the interval."
    return f"{'Even ' if who else ''}{it} leaks: the attack does better than a guesser who sees nothing."


def _kind(score: Score) -> str:
    """The kind of attack within a sentence."""
    return threat(score.threat).kind


def _use(run: Run) -> Score:
    assert run.use is not None  # callers keep only runs with a utility score
    return run.use


def _worse(a: float, b: float, like: Score) -> bool:
    """Whether ``a`` is worse for the owner than ``b``."""
    return a < b if like.better_for_owner == "higher" else a > b


def _overlap(a: Score, b: Score) -> bool:
    return a.ci[0] <= b.ci[1] and b.ci[0] <= a.ci[1]
