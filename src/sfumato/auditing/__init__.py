"""Measure a frozen mechanism: what others can do with the release, and what attackers can."""

from sfumato.auditing.auditor import audit
from sfumato.auditing.controls import Controls
from sfumato.auditing.effort import CPU, FULL, SMOKE, Effort
from sfumato.auditing.result import Audit

__all__ = ["CPU", "FULL", "SMOKE", "Audit", "Controls", "Effort", "audit"]
