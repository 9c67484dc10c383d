"""From a goal to a gated release: ``sfumato protect`` and ``sfumato explain``."""

from sfumato.workflow.protect.outcome import Protected
from sfumato.workflow.protect.protecting import SearchTerms, protect

__all__ = ["Protected", "SearchTerms", "protect"]
