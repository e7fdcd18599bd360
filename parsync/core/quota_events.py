"""The events of quotas: a timer of the coordinator, and its messages from and to others."""

from __future__ import annotations

from parsync.core._native import (
    QuotaGrant,
    QuotaReport,
    QuotaRequest,
    QuotaRoundDue,
    QuotaShares,
)

__all__ = ["QuotaGrant", "QuotaReport", "QuotaRequest", "QuotaRoundDue", "QuotaShares"]
