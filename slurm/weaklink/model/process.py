"""What running a command gives back, and the shapes of functions that run one. Types only.

The implementation is ``weaklink.observe.command``; parts that may not import it (the scheduler) are handed a runner.
"""

from collections.abc import Sequence
from typing import Callable, NamedTuple, Optional

EXITED = "exited"  # ran to its end; rc is its exit status, or minus the signal that ended it
TIMEOUT = "timeout"  # the deadline passed; it was killed with its group
MISSING = "missing"  # no such tool on the fixed PATH
ABANDONED = "abandoned"  # the deadline passed and not even SIGKILL ended it (uninterruptible sleep)
ERROR = "error"  # could not be started, or wrote more than we keep


class RunResult(NamedTuple):
    """The outcome of one command.

    ``argv`` as asked, ``rc`` the exit status (None unless ``status`` is "exited"), ``out`` and ``err`` the captured
    text (bytes that are no UTF-8 survive as surrogate escapes), ``status`` one of the words above, ``seconds`` wall
    time.
    """

    argv: tuple[str, ...]
    rc: Optional[int]
    out: str
    err: str
    status: str
    seconds: float

    @property
    def ok(self) -> bool:
        """True when the command ran to its end and said 0."""
        return self.status == EXITED and self.rc == 0

    def failure(self) -> str:
        """Return one line that says how the command failed; empty when it did not."""
        if self.ok:
            return ""
        name = self.argv[0] if self.argv else "?"
        if self.status == EXITED:
            words = " ".join(self.err.split())[:160]
            return f"{name} exited {self.rc}" + (f": {words}" if words else "")
        if self.status in (TIMEOUT, ABANDONED):
            return f"{name} did not end within {self.seconds:.1f} s ({self.status})"
        if self.status == MISSING:
            return f"{name} is not installed"
        return f"{name}: {' '.join(self.err.split())[:160]}"


# argv, deadline in seconds
Runner = Callable[[Sequence[str], float], RunResult]
# argv, deadline in seconds, text for its standard input
Feeder = Callable[[Sequence[str], float, str], RunResult]
