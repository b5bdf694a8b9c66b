"""Read what ``dcb OBJECT show`` of iproute2 prints: pfc, ets, app, buffer, dcbx, apptrust, maxrate; text or ``-j``.

Text is words: a field's name, then its values ``KEY:VALUE``; which fields share a line differs by version, so lines
matter little. Several objects may follow one another. Code points are names unless ``-N`` was given. Layout: dcb/*.c
of iproute2; a code point listed more than once counts with its highest priority, as the kernel does it.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from weaklink.observe.tools import mlx_json
from weaklink.observe.tools.eth_qos import PRIORITIES, dscp, priority
from weaklink.observe.tools.mlx_common import complaint, note, nothing
from weaklink.observe.tools.text import Trouble, integer

NAME = "dcb"
_FIELDS = frozenset(
    {
        *("pfc-cap", "macsec-bypass", "delay", "prio-pfc", "requests", "indications"),
        *("willing", "ets-cap", "cbs", "tc-bw", "tc-tsa", "reco-tc-bw", "reco-tc-tsa", "prio-tc", "reco-prio-tc"),
        *("default-prio", "ethtype-prio", "stream-port-prio", "dgram-port-prio", "port-prio", "dscp-prio", "pcp-prio"),
        *("prio-buffer", "buffer-size", "total-size", "tc-maxrate", "order", "prio-pcp", "prio-dscp"),
    }
)
_DCBX = frozenset({"host", "lld-managed", "cee", "ieee", "static"})
_SIGN = re.compile(r"(?m)^\s{0,8}(?:pfc-cap|prio-pfc|dscp-prio|ets-cap|willing (?:on|off)|prio-buffer|prio-tc):?\s")
_JSON = re.compile(r'"(?:pfc_cap|prio_pfc|dscp_prio|ets_cap|prio_buffer|prio_tc)"')
_COMMAND = re.compile(r"\s{0,8}(?:[#$>]|\S{1,60}[#$>]|\+)\s{0,4}(?:sudo )?\S{0,60}dcb ")
_PROBLEM = re.compile(r"(?:Error|RTNETLINK answers|dcb|Attribute)\b.{0,80}:|Object \"|Cannot find|Device \"|Failed to")
_PAIR = re.compile(r"[^\s:]{1,40}:[^\s:]")
_SIZE = re.compile(r"(\d{1,12})(?:\.\d{1,3})?(b|k|Kb|kb|K|m|Mb|M)?\Z")


class Record(NamedTuple):
    """The settings: None where the output does not hold that field.

    ``pfc`` maps priorities to on or off, ``prio_tc`` priorities to traffic classes, ``dscp_map`` code points to
    priorities, ``buffers`` numbers to bytes, ``prio_buffer`` priorities to buffers, ``counts`` of PFC frames by kind.
    """

    pfc: Optional[dict[int, bool]]
    prio_tc: Optional[dict[int, int]]
    dscp_map: Optional[dict[int, int]]
    tc_bw: Optional[dict[int, int]]
    tc_tsa: Optional[dict[int, str]]
    prio_buffer: Optional[dict[int, int]]
    buffers: Optional[dict[int, int]]
    counts: dict[str, list[int]]
    dcbx: Optional[str]
    trust: Optional[str]
    complaints: tuple[str, ...]
    version: Optional[str]
    troubles: tuple[Trouble, ...]


class _Field(NamedTuple):
    line: int
    words: list[str]


def recognise(head: str) -> int:
    """Return 0..100: how sure it is that this text is dcb's."""
    head = head[:65_536]
    if mlx_json.looks_json(head):
        return 90 if _JSON.search(head) else 0
    if _SIGN.search(head):
        return 90
    return 70 if 'try "dcb ' in head else 0


def parse(lines: Iterable[str]) -> Record:
    """Return what the output holds; never raises. What could not be read is in ``troubles``."""
    first, everything = mlx_json.peek(lines)
    return _json(everything) if mlx_json.looks_json(first) else _text(everything, first)


def _text(lines: Iterable[str], first: str) -> Record:
    fields: dict[str, _Field] = {}
    complaints: list[str] = []
    troubles: list[Trouble] = []
    words: list[str] = []
    dcbx: list[str] = []
    for at, line in enumerate(lines, 1):
        if _COMMAND.match(line):
            words = []
            continue
        error = complaint(line)
        if error or _PROBLEM.match(line):
            complaints[20:] = []
            complaints.append(error or line.strip()[:300])
            continue
        pieces = line.split()
        if pieces and all(piece in _DCBX for piece in pieces):
            dcbx, words = pieces, []
            continue
        if pieces and not line[:1].isspace() and pieces[0].rstrip(":") not in _FIELDS and not _PAIR.match(pieces[0]):
            words = []  # a title of its own
            continue
        for piece in pieces:
            name = piece.rstrip(":")
            if name in _FIELDS:
                words = []
                if name in fields and fields[name].words:
                    note(troubles, at, f"{name} comes twice; more than one device? Judge them apart")
                else:
                    fields[name] = _Field(at, words)
            elif len(words) < 4096:  # noqa: PLR2004 - a bound, far above any list of a port
                words.append(piece)
    return _record(fields, " ".join(dcbx) or None, complaints, troubles, first)


def _json(lines: Iterable[str]) -> Record:
    found, troubles = mlx_json.documents(lines)
    fields: dict[str, _Field] = {}
    dcbx: Optional[str] = None
    for document in found:
        for item in mlx_json.objects(document):
            for key, value in item.items():
                name = str(key).replace("_", "-")
                if name in _FIELDS and name not in fields:
                    fields[name] = _Field(0, _words(value, keyed=name != "order"))
                elif name in _DCBX and value is True:
                    dcbx = f"{dcbx} {name}" if dcbx else name
    return _record(fields, dcbx, [], list(troubles), None)


def _words(value: Any, *, keyed: bool) -> list[str]:
    """Return a JSON value as the text form has it: ``KEY:VALUE`` words."""
    if isinstance(value, dict):
        return [f"{key}:{_word(item)}" for key, item in value.items()]
    if isinstance(value, list):
        pairs = []
        for place, item in enumerate(value):
            if isinstance(item, list) and len(item) == 2:  # noqa: PLR2004 - key and value
                pairs.append(f"{item[0]}:{_word(item[1])}")
            elif isinstance(item, dict):
                pairs += _words(item, keyed=keyed)
            elif not keyed or (isinstance(item, str) and ":" in item):
                pairs.append(_word(item))
            else:
                pairs.append(f"{place}:{_word(item)}")
        return pairs
    return [_word(value)]


def _word(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _record(
    fields: dict[str, _Field],
    dcbx: Optional[str],
    complaints: list[str],
    troubles: list[Trouble],
    first: Optional[str],
) -> Record:
    """Return the record; ``first`` is the first line of a text, None for JSON."""
    if not fields and dcbx is None and not troubles:
        nothing(first or "", complaints, troubles, "no setting was found")
    pfc = _by_priority(fields, "prio-pfc", troubles)
    tsa = _pairs(fields, "tc-tsa", troubles)
    states = None if pfc is None else {key: value == "on" for key, value in pfc.items() if value in {"on", "off"}}
    if pfc is not None and states is not None and len(states) != len(pfc):
        note(troubles, fields["prio-pfc"].line, "prio-pfc: a value is neither on nor off")
    return Record(
        pfc=states,
        prio_tc=_numbers(_by_priority(fields, "prio-tc", troubles), priority),
        dscp_map=_dscp_map(fields, troubles),
        tc_bw=_numbers(_pairs(fields, "tc-bw", troubles), integer),
        tc_tsa=tsa,
        prio_buffer=_numbers(_by_priority(fields, "prio-buffer", troubles), integer),
        buffers=_numbers(_pairs(fields, "buffer-size", troubles), _size),
        counts={
            name: [int(word) for word in fields[name].words if word.isdecimal()]
            for name in ("requests", "indications")
            if name in fields
        },
        dcbx=dcbx,
        trust=" ".join(fields["order"].words) if "order" in fields and fields["order"].words else None,
        complaints=tuple(complaints),
        version="json" if first is None else "text",
        troubles=tuple(troubles),
    )


def _pairs(fields: dict[str, _Field], name: str, troubles: list[Trouble]) -> Optional[dict[int, str]]:
    if name not in fields:
        return None
    found: dict[int, str] = {}
    for word in fields[name].words:
        key, colon, value = word.partition(":")
        number = priority(key)
        if not colon or number is None or not value:
            note(troubles, fields[name].line, f"{name}: {word!r:.40} is no KEY:VALUE of a number 0..7")
        else:
            found[number] = value
    return found


def _by_priority(fields: dict[str, _Field], name: str, troubles: list[Trouble]) -> Optional[dict[int, str]]:
    found = _pairs(fields, name, troubles)
    if found is not None and len(found) != PRIORITIES:
        note(troubles, fields[name].line, f"{name}: {len(found)} priorities, wanted {PRIORITIES}; is it cut?")
    return found


def _numbers(found: Optional[dict[int, str]], read: Any) -> Optional[dict[int, int]]:
    if found is None:
        return None
    values = {key: read(value.rstrip("%")) for key, value in found.items()}
    return {key: value for key, value in values.items() if value is not None}


def _size(word: str) -> Optional[int]:
    match = _SIZE.match(word)
    if match is None:
        return None
    unit = (match.group(2) or "b").lower()[0]
    return int(match.group(1)) * {"b": 1, "k": 1024, "m": 1024 * 1024}[unit]


def _dscp_map(fields: dict[str, _Field], troubles: list[Trouble]) -> Optional[dict[int, int]]:
    field = fields.get("dscp-prio")
    if field is None:
        # An app table without code points prints nothing of them, but its other rows tell that it was shown.
        shown = {"default-prio", "ethtype-prio", "port-prio", "stream-port-prio", "dgram-port-prio", "pcp-prio"}
        return {} if shown & set(fields) else None
    found: dict[int, int] = {}
    for word in field.words:
        key, _, value = word.rpartition(":")
        point, number = dscp(key), priority(value)
        if point is None or number is None:
            note(troubles, field.line, f"dscp-prio: {word!r:.40} is no code point and priority")
        else:
            found[point] = max(number, found.get(point, 0))
    return found
