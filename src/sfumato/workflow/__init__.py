"""What each command does, as functions on run folders."""

from sfumato.workflow.compare import Point, compare, sweep
from sfumato.workflow.fitting import fit_run, fitted_on, resolve
from sfumato.workflow.measuring import audit_run
from sfumato.workflow.releasing import release_run

__all__ = ["Point", "audit_run", "compare", "fit_run", "fitted_on", "release_run", "resolve", "sweep"]
