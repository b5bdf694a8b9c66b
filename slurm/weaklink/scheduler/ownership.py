"""Whose drain is it? Only a reason that carries our token, over exactly these words, for exactly this node, is ours.

The reason reads ``weaklink:<check>: <message> [<token>]``. The token is 5 random characters and 35 bits of a keyed hash
over node, check, message and those 5; so an edited reason, a copied one, or one typed after our pattern is the admin's.

Slurm has no compare-and-set: a drain overwrites whatever was there. So: read, decide, then read, write and read again
in one scontrol process; a drain of somebody else's that came between is put back word for word. What happens between
the read next to the write and the write itself remains: 1.4 ms a command, measured (Slurm 24.11, one machine).
"""

import re
import time
from collections.abc import Mapping
from typing import Callable, NamedTuple, Optional, Protocol

from weaklink.scheduler.budget import Decision
from weaklink.scheduler.slurm import Exchange
from weaklink.scheduler.text import SlurmError
from weaklink.scheduler.types import NodeInfo

MAX_REASON = 200
_NONCE = 5
_MAC = 7
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CHECK = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}\Z")
_REASON = re.compile(r"weaklink:([a-z0-9][a-z0-9_.-]{0,39}): ([ -~]*) \[([A-Z2-7]{12})\]\Z")
_MIN_KEY = 16
_SAME_STAMP = 1.05  # seconds

DRAINED = "drained"
ALREADY_OUT = "already-out"  # out of service with our token already
FOREIGN = "foreign"  # somebody else's drain, or Slurm's; untouched
OVER_BUDGET = "over-budget"
RESTORED = "restored"  # somebody else's drain came between and was put back
UNKNOWN = "unknown"  # a look-up or an update failed; nothing more was done
RELEASED = "released"
NOTHING = "nothing-to-do"

# Slurm keeps the reason of a drain that is gone, and shows it again when it drains the node itself ("Kill task
# failed"): that drain would look like ours. So a node that is given back gets this reason, which is nobody's.
RETURNED = "weaklink: returned"


class Reason(NamedTuple):
    """The parts of a reason that has our form (which alone does not make it ours)."""

    check: str
    message: str
    token: str


class Outcome(NamedTuple):
    """What came of a drain or a release: one of the words above, one line of detail, the token when there is one."""

    what: str
    detail: str = ""
    token: str = ""


class Slurm(Protocol):
    """The part of the Slurm client that is used here."""

    def nodes(self, names: Optional[list[str]] = None) -> dict[str, NodeInfo]:
        """Return nodes by name."""

    def drain(self, node: str, reason: str) -> None:
        """Drain with a reason."""

    def undrain(self, node: str, reason: str = "") -> None:
        """Take the drain off."""

    def set_reason(self, node: str, reason: str) -> None:
        """Replace the reason."""

    def exchange_drain(self, node: str, reason: str) -> Exchange:
        """Read, drain, read."""

    def exchange_undrain(self, node: str, reason: str) -> Exchange:
        """Read, undrain, read."""


def load_key(path: str) -> Optional[bytes]:
    """Return the key (hex in a file that only root can read), or None: then we own nothing and drain nothing."""
    import os
    import stat

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077:
                return None
            key = bytes.fromhex(os.read(fd, 4096).decode("ascii").strip())
        finally:
            os.close(fd)
    except (OSError, ValueError):
        return None
    return key if len(key) >= _MIN_KEY else None


def _base32(data: bytes, count: int) -> str:
    bits = int.from_bytes(data, "big")
    width = len(data) * 8
    return "".join(_ALPHABET[(bits >> (width - 5 * (index + 1))) & 31] for index in range(count))


def _mac(key: bytes, node: str, check: str, message: str, nonce: str) -> str:
    import hashlib
    import hmac

    text = f"{node}\0{check}\0{message}\0{nonce}".encode("utf-8", "surrogateescape")
    return _base32(hmac.new(key, text, hashlib.sha256).digest(), _MAC)


def clean(message: str) -> str:
    """Return ``message`` as printable ASCII in one line, without quotes and backslashes."""
    plain = "".join(
        char if " " <= char <= "~" and char not in "\"'`\\" else "?" if char > "~" else " " for char in message
    )
    return " ".join(plain.split())


def format_reason(key: bytes, node: str, check: str, message: str, nonce: Optional[str] = None) -> str:
    """Return the reason for a drain of ours: at most 200 bytes, printable ASCII, no quotes."""
    if not _CHECK.match(check):
        raise ValueError(f"not the name of a check: {check!r}")
    if nonce is None:
        import os

        nonce = _base32(os.urandom(4), _NONCE)
    room = MAX_REASON - len(f"weaklink:{check}:  []") - _NONCE - _MAC
    words = clean(message) or "no message"
    if len(words) > room:
        words = words[: room - 3].rstrip() + "..."
    return f"weaklink:{check}: {words} [{nonce}{_mac(key, node, check, words, nonce)}]"


def parse_reason(text: str) -> Optional[Reason]:
    """Return the parts of a reason of our form, or None."""
    if len(text) > MAX_REASON:
        return None
    match = _REASON.match(text)
    return Reason(match[1], match[2], match[3]) if match else None


def token_of(reason: str) -> str:
    """Return the token of a reason of ours."""
    return reason[-1 - _NONCE - _MAC : -1]


def owned(key: Optional[bytes], node: str, text: str) -> Optional[Reason]:
    """Return the parts of ``text`` when it is our reason for ``node``, or None."""
    if not key:
        return None
    reason = parse_reason(text)
    if reason is None:
        return None
    import hmac

    nonce, mac = reason.token[:_NONCE], reason.token[_NONCE:]
    return reason if hmac.compare_digest(mac, _mac(key, node, reason.check, reason.message, nonce)) else None


def owns(key: Optional[bytes], node: str, text: str) -> bool:
    """Return True when ``text`` is our reason for ``node``, untouched."""
    return owned(key, node, text) is not None


def _put_back(slurm: Slurm, before: NodeInfo) -> Outcome:
    """Give a node back the state and the very words that somebody else gave it."""
    whose = f"{before.reason_user or 'somebody'}'s of {before.reason_time or 'an unknown time'}: {before.reason}"
    try:
        if before.drained:
            slurm.drain(before.name, before.reason)
        else:
            slurm.undrain(before.name)
            if before.reason:
                slurm.set_reason(before.name, before.reason)
        now = slurm.nodes([before.name])[before.name]
    except SlurmError as error:
        return Outcome(UNKNOWN, f"could not put back {whose} ({error})")
    if now.reason != before.reason:
        return Outcome(FOREIGN, f"put back {whose}; it has been changed again since")
    return Outcome(RESTORED, f"put back {whose}")


def drain(
    slurm: Slurm,
    key: Optional[bytes],
    node: str,
    check: str,
    message: str,
    *,
    decide: Callable[[Mapping[str, NodeInfo]], Decision],
    pause: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Drain ``node`` for ``check`` unless it is out already, the budget says no, or anything could not be read.

    ``decide`` is given all nodes, before the write and once more after it (when several drain at once, the latest undo
    theirs). Never raises SlurmError: a failure is the outcome "unknown".
    """
    if not key:
        return Outcome(UNKNOWN, "no token key on this node, so nothing can be drained; run site.yml")
    try:
        refusal = _refusal(slurm.nodes(), key, node, decide)
    except SlurmError as error:
        refusal = Outcome(UNKNOWN, str(error))
    if refusal is not None:
        return refusal
    reason = format_reason(key, node, check, message)
    try:
        before, after = slurm.exchange_drain(node, reason)
    except SlurmError as error:
        return _after_failure(slurm, key, node, reason, error, decide, pause)
    if before.taken and not owns(key, node, before.reason) and after.reason == reason:
        return _put_back(slurm, before)
    if after.reason != reason or not after.drained:
        return Outcome(
            FOREIGN, f"changed meanwhile by {after.reason_user or 'somebody'}: {after.reason or 'undrained'}"
        )
    # The stamps that say who was first are whole seconds. Only when this second is over is everybody seen who shares
    # it; two that looked at once and sorted by name could both believe to be first.
    pause(_SAME_STAMP)
    return _settle(slurm, key, node, token_of(reason), decide)


def _after_failure(  # noqa: PLR0917 - what drain was given
    slurm: Slurm,
    key: bytes,
    node: str,
    reason: str,
    error: SlurmError,
    decide: Callable[[Mapping[str, NodeInfo]], Decision],
    pause: Callable[[float], None],
) -> Outcome:
    """Look whether a drain that failed (timed out, for one) has arrived after all: then the budget holds for it too."""
    try:
        now = slurm.nodes([node])[node]
    except SlurmError:
        return Outcome(UNKNOWN, str(error), token_of(reason))
    if now.reason != reason or not now.drained:
        return Outcome(UNKNOWN, str(error))
    pause(_SAME_STAMP)
    outcome = _settle(slurm, key, node, token_of(reason), decide)
    return outcome._replace(detail=f"what stood there right before is not known ({error}); {outcome.detail}")


def _refusal(
    nodes: Mapping[str, NodeInfo], key: bytes, node: str, decide: Callable[[Mapping[str, NodeInfo]], Decision]
) -> Optional[Outcome]:
    """Return why ``node`` may not be drained, or None when it may."""
    info = nodes.get(node)
    if info is None:
        return Outcome(UNKNOWN, f"Slurm does not know a node {node}")
    if info.taken:
        return _taken(key, info)
    decision = decide(nodes)
    return None if decision.allowed else Outcome(OVER_BUDGET, decision.reason)


def _taken(key: bytes, info: NodeInfo) -> Outcome:
    reason = owned(key, info.name, info.reason)
    if reason:
        return Outcome(ALREADY_OUT, info.reason, reason.token)
    whose = f"by {info.reason_user or 'Slurm'}: {info.reason or 'no reason given'}"
    return Outcome(FOREIGN, f"already {'+'.join(sorted(info.states))} {whose}")


def _settle(
    slurm: Slurm, key: bytes, node: str, token: str, decide: Callable[[Mapping[str, NodeInfo]], Decision]
) -> Outcome:
    """Look again after the write: several nodes may have drained at once, each within its view of the budget."""
    try:
        decision = decide(slurm.nodes())
    except SlurmError as error:
        return Outcome(DRAINED, f"drained; the budget could not be read again ({error})", token)
    if decision.allowed:
        return Outcome(DRAINED, "", token)
    undone = release(slurm, key, node)
    if undone.what == RELEASED:
        return Outcome(OVER_BUDGET, f"drained and undone: {decision.reason}", token)
    return Outcome(UNKNOWN, f"over budget ({decision.reason}), and not undone: {undone.what} {undone.detail}", token)


def release(slurm: Slurm, key: Optional[bytes], node: str) -> Outcome:  # noqa: PLR0911 - one per way it can end
    """Undrain ``node`` if, and only if, the drain on it is ours. Never raises SlurmError."""
    if not key:
        return Outcome(UNKNOWN, "no token key here, so nobody's drain can be told from ours; run site.yml")
    try:
        info = slurm.nodes([node])[node]
        reason = owned(key, node, info.reason)
        if not info.drained:
            return Outcome(NOTHING, f"{node} is not drained")
        if reason is None:
            return Outcome(FOREIGN, f"{node} was drained by {info.reason_user or 'somebody'}: {info.reason}")
        before, after = slurm.exchange_undrain(node, RETURNED)
    except SlurmError as error:
        return Outcome(UNKNOWN, str(error))
    if after.drained:
        return Outcome(FOREIGN, f"drained meanwhile by {after.reason_user or 'somebody'}: {after.reason}")
    if before.drained and not owns(key, node, before.reason):
        return _put_back(slurm, before)
    return Outcome(RELEASED, reason.message, reason.token)
