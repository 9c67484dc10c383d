"""From a goal to a gated release: ``sfumato protect`` and ``sfumato explain``."""

from sfumato.workflow.protect.protecting import Protected, Terms, protect

__all__ = ["Protected", "Terms", "protect"]
