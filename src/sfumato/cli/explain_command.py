"""``sfumato explain``: what can be said of a goal before anything is trained."""

from __future__ import annotations

import typer

from sfumato.cli.gate_commands import Groups, Least, Most, PolicyFile, Require, asked_policy
from sfumato.cli.gate_commands import Shares as PeopleShares
from sfumato.cli.options import Domain, Id, Json, Limit, Private, Seed, Shares, Utility, X, data_config
from sfumato.cli.protect_command import Given, LeavesName
from sfumato.core.errors import unknown


def explain(
    data: Given,
    x: X = None,
    utility: Utility = None,
    private: Private = None,
    subject: Id = None,
    limit: Limit = None,
    shares: Shares = None,
    domain: Domain = None,
    policy: PolicyFile = None,
    most: Most = None,
    least: Least = None,
    groups: Groups = None,
    people: PeopleShares = None,
    require: Require = None,
    leaves: LeavesName = None,
    labels: bool = typer.Option(False, "--labels", help="The utility labels go along."),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Say, without training anything, what the useful labels tell by themselves and which mechanisms fit.

    sfumato explain people.csv --utility readmitted --private sex --max attribute=10% --min accuracy=0.7
    """
    from sfumato.cli.output import OUT, new_table, print_json, print_text
    from sfumato.mechanisms.search_space import LEAVES
    from sfumato.workflow.protect.explaining import explain as told
    from sfumato.workflow.protect.explaining import summary

    if leaves is not None and leaves not in LEAVES:
        raise unknown("kind of release (--leaves)", leaves, LEAVES)
    given = data_config({}, data, x, utility, private, subject, limit, domain, shares)
    del given["source"]
    asked = asked_policy(policy, most or (), least or (), groups or (), people or (), require)
    found = told(data, asked, leaves=leaves, labels=labels, seed=seed, **given).to_json()
    if json:
        print_json(found)
        return
    print_text("\n".join(summary(found)))
    table = new_table("mechanism", "what leaves", "made against", "promise", "fits")
    for one in found["advice"]:
        promise = f"{one['promise']}, every fit spends" if one["spends"] else one["promise"]
        fits = "yes" if one["fits"] else f"no: {one['why_not']}"
        table.add_row(one["mechanism"], one["leaves"], ", ".join(one["against"]), promise, fits)
    OUT.print(table)
