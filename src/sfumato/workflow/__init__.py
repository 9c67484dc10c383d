"""What each command does, as functions on run folders."""

from sfumato.workflow.auditing import audit_run
from sfumato.workflow.compare import Point, compare, sweep
from sfumato.workflow.fitting import fit_run, fitted_on, load_run, records_of, resolve
from sfumato.workflow.gate import Check, Gate, checks_of, gate_folder
from sfumato.workflow.payload_audit import audit_payloads
from sfumato.workflow.release_audit import audit_release, audit_release_files
from sfumato.workflow.releases_side_by_side import audit_releases, releases_named
from sfumato.workflow.releasing import release_run
from sfumato.workflow.sampling import sample_run
from sfumato.workflow.users import compare_users, fit_users
from sfumato.workflow.users_audit import audit_users, is_users_folder
from sfumato.workflow.verifying import verify_release
from sfumato.workflow.warrant import UNAUDITED, Warrant

__all__ = [
    "UNAUDITED",
    "Check",
    "Gate",
    "Point",
    "Warrant",
    "audit_payloads",
    "audit_release",
    "audit_release_files",
    "audit_releases",
    "audit_run",
    "audit_users",
    "checks_of",
    "compare",
    "compare_users",
    "fit_run",
    "fit_users",
    "fitted_on",
    "gate_folder",
    "is_users_folder",
    "load_run",
    "records_of",
    "release_run",
    "releases_named",
    "resolve",
    "sample_run",
    "sweep",
    "verify_release",
]
