"""How every hook starts: read what is expected, then run the work in its frame. What breaks is logged, exit 0."""

import os
from typing import Callable, NoReturn

from weaklink.hooks.files import Places, log
from weaklink.hooks.frame import OK, Clock, leave, supervise
from weaklink.model.expected import Expected, ExpectedError, read

_DEFAULT = 10.0  # seconds, when expected.json cannot be read
_MARGIN = 1.0  # seconds by which the work means to be done before the frame ends it

Work = Callable[[Expected, Places, Clock, dict[str, str]], int]


def begin(context: str, work: Work, places: Places, environ: dict[str, str]) -> int:
    """Run one hook and return its exit status for Slurm."""

    def trouble(text: str) -> None:
        who = environ.get("SLURMD_NODENAME", "")
        job = environ.get("SLURM_JOB_ID", "")
        record = {"context": context, "node": who, "verdict": "unknown", "action": "unknown", "check": ""}
        log(places, {**record, "message": f"{context}: {text}"[:1000], "job": job})

    try:
        expected = read(places.expected)
    except ExpectedError as error:
        trouble(str(error))
        return OK
    name = environ.get("SLURMD_NODENAME") or expected.node
    if name != expected.node:
        trouble(f"expected.json is for {expected.node}, slurmd calls this node {name}; run site.yml")
        return OK
    deadline = expected.deadline(context) if context in expected.deadlines else _DEFAULT

    def inside() -> int:
        # The worker's own errors are said here, where the log is; the frame only sees a status.
        try:
            return work(expected, places, Clock(max(0.5, deadline - _MARGIN)), environ)
        except Exception as error:  # noqa: BLE001 - a defect of ours must not take a node away
            trouble(f"broke: {type(error).__name__}: {error}")
            return OK

    return supervise(inside, deadline, trouble)


def hook(context: str, work: Work) -> NoReturn:
    """Run a hook of this machine and exit."""
    code = OK
    try:
        code = begin(context, work, Places(), dict(os.environ))
    except BaseException:  # noqa: BLE001 - see the module's first line; where even the log fails, silence is left
        code = OK
    finally:
        leave(code)
