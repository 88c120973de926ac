"""load: what a load generator saw, whichever generator it was.

Requests are those answered with what was asked for: whole, and with a status of 2xx. All else is
an error of some kind, and never part of a rate.
"""

from dataclasses import dataclass
from typing import Dict, Optional

KINDS = ("connect", "reset", "time-out", "not 2xx", "length")


@dataclass(frozen=True)
class Load:
    """One run of a load generator."""

    requests: int
    errors: Dict[str, int]  # by kind, of KINDS; those that occurred
    seconds: float
    mean_ms: float  # of the time that a request took
    percentiles: Dict[float, float]  # 50, 90, 99, 100: so many ms sufficed for so many percent
    connects: bool  # is connecting a part of a request's time?
    content: Optional[int] = None  # bytes of it that came; None: the generator does not say

    @property
    def rate(self):
        """Requests a second."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def failed(self):
        return sum(self.errors.values())

    def errors_text(self):
        """By kind: "12 reset, 3 not 2xx"."""
        return ", ".join("%s %s" % (format(self.errors[kind], ","), kind)
                         for kind in KINDS if self.errors.get(kind))
