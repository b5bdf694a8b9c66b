"""What has to be said of single variables beside kind, range, default and class. Pure; no facts of a node needed."""

from collections.abc import Callable

from weaklink.lint import against_devices, selection
from weaklink.lint.base import CONTRADICTION, DEBUG, DISCOURAGED, NO_OP, OK, PREFIX_MATCH
from weaklink.lint.context import Context
from weaklink.lint.parse import CONF, Setting
from weaklink.lint.units import spoken, timeout_seconds
from weaklink.lint.values import Remark, number
from weaklink.lint.version import Version

_GID_DYNAMIC = Version(2, 21)
_ATTN = Version(2, 32)
_LONG = 26  # an InfiniBand timeout from which on a dead link is noticed after half an hour and more
_SOCKETS = 64
_PSK = 32
_CE = 3  # both ECN bits: congestion experienced
_SYS = 4
_OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")

Special = Callable[[Setting, Context], list[Remark]]


def _timeout(setting: Setting, context: Context) -> list[Remark]:
    exponent = number(setting)
    if exponent is None:
        return []
    seconds = timeout_seconds(exponent)
    if seconds is None:
        return [Remark(DISCOURAGED, "0 waits for ever: a dead link then hangs the job")] if exponent == 0 else []
    retries = context.number("NCCL_IB_RETRY_CNT") or 0
    whole = seconds * retries
    total = spoken(whole) if whole >= 60 else f"{whole:.2g} s"  # noqa: PLR2004 - a minute
    text = f"4.096 µs * 2^{exponent} = {spoken(seconds)} a try, about {total} with {retries} retries before an error"
    if exponent >= _LONG:
        return [Remark(DISCOURAGED, f"{text}: a dead link holds the job that long; 20 to 23 suit large fabrics")]
    return [Remark(OK, text)]


def _hca(setting: Setting, context: Context) -> list[Remark]:
    chosen = selection.parse(setting.value)
    found = _list_flaws(chosen, "NCCL_IB_HCA")
    facts = context.facts
    if not chosen.exact and chosen.entries and not (facts is not None and against_devices.meant(chosen, facts)):
        found.append(Remark(PREFIX_MATCH, _prefixes(setting.value, chosen)))
    bad = [entry for entry in setting.value.lstrip("^=").split(",") if not _port_good(entry)]
    if bad:
        found.append(Remark(CONTRADICTION, f"{bad[0]!r} is not <hca>[:<port>[:<rail>[:<plane>]]] with whole numbers"))
    if chosen.exact and not chosen.exclude and not found:
        count = len(chosen.entries)
        found.append(Remark(OK, f"{count} HCAs by their whole names" if count > 1 else "one HCA by its whole name"))
    return found


def _prefixes(value: str, chosen: selection.Selection) -> str:
    family = chosen.families([])
    if family:
        means = "excludes" if chosen.exclude else "takes"
        text = f"without '=' each entry is a prefix: {family[0]} {means} every HCA whose name begins so"
        return f"{text}, storage ones too; list whole names behind ="
    first = next((entry.name for entry in chosen.entries if not entry.name.endswith("0")), chosen.entries[0].name)
    text = f"without '=' each entry is a prefix: {first} also means {first}0 to {first}9 and so on"
    return f"{text}; write {selection.fix(value)}"


def _port_good(entry: str) -> bool:
    fields = entry.split(":")[1:]
    return len(fields) <= 3 and all(field == "" or field.lstrip("-").isdigit() for field in fields)  # noqa: PLR2004 - port, rail, plane


def _list_flaws(chosen: selection.Selection, name: str) -> list[Remark]:
    found = []
    if not chosen.entries:
        found.append(Remark(CONTRADICTION, "names nothing, so that it filters nothing"))
    if len(chosen.entries) > selection.MAX_ENTRIES:
        message = f"{len(chosen.entries)} entries; NCCL keeps {selection.MAX_ENTRIES}"
        found.append(Remark(CONTRADICTION, message))
    marked = [entry.name for entry in chosen.entries if entry.name[0] in "=^"]
    if marked:
        plain = marked[0].lstrip("=^")
        message = f"'=' and '^' count once, in front of the list: NCCL looks for a device named {marked[0]!r}"
        found.append(Remark(CONTRADICTION, f"{message}; write {plain}"))
    spaced = [entry.name for entry in chosen.entries if entry.name != entry.name.strip()]
    if spaced:
        found.append(Remark(CONTRADICTION, f"a space is part of the name {spaced[0]!r}, which matches nothing"))
    names = [(entry.name, entry.port) for entry in chosen.entries]
    twice = sorted({entry for entry, _ in names if names.count((entry, None)) > 1})
    if twice:
        found.append(Remark(DISCOURAGED, f"{name} names {twice[0]} twice"))
    return found


def _ifname(setting: Setting, _context: Context) -> list[Remark]:
    chosen = selection.parse(setting.value)
    found = _list_flaws(chosen, setting.name)
    if not chosen.exact and chosen.entries:
        first = chosen.entries[0].name
        means = "excludes" if chosen.exclude else "also takes"
        message = f"without '=' it is a prefix: {first} {means} every name that begins so"
        found.append(Remark(PREFIX_MATCH, f"{message}; write {selection.fix(setting.value)}"))
    if not chosen.exclude and chosen.exact and not found:
        found.append(Remark(OK, "exact names; NCCL's own choice of an interface is off"))
    return found


def _gid_index(setting: Setting, context: Context) -> list[Remark]:
    index = number(setting)
    if index is None or index < 0:
        return []
    if context.at < _GID_DYNAMIC:
        text = f"NCCL {context.at} cannot find the GID itself; index {index} has to be RoCE v2 with the right address"
        return [Remark(OK, f"{text} on every HCA of every node (show_gids)")]
    return [
        Remark(
            DISCOURAGED,
            f"since {_GID_DYNAMIC} NCCL finds the RoCE v2 GID itself, and NVIDIA says not to set this; index {index} "
            "is an accident of the order in which addresses came up. Drop it; where the choice must be narrowed, set "
            "NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE or NCCL_IB_ROCE_VERSION_NUM",
        )
    ]


def _gid_choice(_setting: Setting, context: Context) -> list[Remark]:
    index = context.number("NCCL_IB_GID_INDEX")
    if context.value("NCCL_IB_GID_INDEX") is not None and index is not None and index >= 0:
        return [Remark(NO_OP, f"only looked at where NCCL_IB_GID_INDEX is not set; here it is {index}")]
    return []


def _level(setting: Setting, _context: Context) -> list[Remark]:
    found = []
    level = number(setting)
    word = setting.value
    if level is not None:
        word = _OLD_LEVELS[max(0, min(level, _SYS))]
        clamped = ", the largest there is" if level > _SYS else ""
        text = f"whole numbers are legacy: {level} stands for {word}{clamped}, and may stand for something else one day"
        found.append(Remark(DISCOURAGED, f"{text}; write the word"))
    if setting.name != "NCCL_P2P_LEVEL" and word == "SYS":
        text = (
            "it does not enable GPUDirect RDMA, which NCCL uses by itself; SYS permits it across the link between CPU "
        )
        text += "sockets, and so hides a GPU and a NIC that are not beside each other; drop it (default PXB)"
        found.append(Remark(DISCOURAGED, text))
    return found


def _debug(setting: Setting, context: Context) -> list[Remark]:
    word = setting.value.upper()
    if word == "ATTN" and context.at < _ATTN:
        return [Remark(CONTRADICTION, f"NCCL before {_ATTN} does not know ATTN and then logs nothing; write WARN")]
    if word in ("INFO", "TRACE", "ABORT"):
        return [Remark(DEBUG, f"{word} makes every rank of every job write; keep WARN in files")]
    return []


def _dump_file(_setting: Setting, _context: Context) -> list[Remark]:
    return [Remark(DEBUG, "every job writes this file anew; set it for one run")]


def _traffic_class(setting: Setting, _context: Context) -> list[Remark]:
    value = number(setting)
    if value is None:
        return []
    if value & _CE == _CE:
        text = f"{value} is DSCP {value >> 2} with both ECN bits set, which says 'congestion experienced'"
        return [Remark(DISCOURAGED, f"{text}; write {value & ~3 | 2} (ECN capable)")]
    return [Remark(OK, f"the whole traffic class byte: DSCP {value >> 2}, ECN bits {value & _CE}")]


def _split(_setting: Setting, context: Context) -> list[Remark]:
    if context.number("NCCL_IB_QPS_PER_CONNECTION") == 1:
        return [Remark(NO_OP, "with one queue pair a connection (NCCL_IB_QPS_PER_CONNECTION) nothing is split")]
    return []


def _queue_pairs(setting: Setting, _context: Context) -> list[Remark]:
    pairs = number(setting)
    if pairs is not None and pairs > 1:
        return [Remark(OK, f"{pairs} queue pairs give switches that hash flows more to spread; each costs memory")]
    return []


def _sockets(_setting: Setting, context: Context) -> list[Remark]:
    threads = context.number("NCCL_SOCKET_NTHREADS") or 1
    sockets = context.number("NCCL_NSOCKS_PERTHREAD") or 1
    if threads * sockets > _SOCKETS:
        text = f"NCCL_SOCKET_NTHREADS * NCCL_NSOCKS_PERTHREAD is {threads * sockets}, and may be {_SOCKETS} at most"
        return [Remark(CONTRADICTION, text)]
    return []


def _ctas(_setting: Setting, context: Context) -> list[Remark]:
    low, high = context.number("NCCL_MIN_CTAS"), context.number("NCCL_MAX_CTAS")
    if low is not None and high is not None and low > high:
        return [Remark(CONTRADICTION, f"NCCL_MIN_CTAS {low} is more than NCCL_MAX_CTAS {high}")]
    return []


def _launch_mode(_setting: Setting, _context: Context) -> list[Remark]:
    return [
        Remark(DEBUG, "it is about launching kernels where one process drives several GPUs, and starts nothing faster")
    ]


def _channels(_setting: Setting, _context: Context) -> list[Remark]:
    return [Remark(DEBUG, "more channels take more of the GPU from the computation and can be slower")]


def _conf_file(setting: Setting, _context: Context) -> list[Remark]:
    if setting.file.endswith("." + CONF):
        return [Remark(NO_OP, "NCCL looks at this in the environment only, before it reads any file")]
    return []


def _pkey(_setting: Setting, context: Context) -> list[Remark]:
    if (context.number("NCCL_IB_PKEY_VALUE") or -1) >= 0:
        return [Remark(NO_OP, "NCCL_IB_PKEY_VALUE is set and takes precedence")]
    return []


def _threshold(setting: Setting, context: Context) -> list[Remark]:
    size, buffer = number(setting), context.number("NCCL_BUFFSIZE")
    if size is not None and buffer is not None and size > buffer:
        return [Remark(DISCOURAGED, f"{size} is above NCCL_BUFFSIZE {buffer}: no message uses adaptive routing")]
    return []


def _ras(setting: Setting, _context: Context) -> list[Remark]:
    if number(setting) == 0:
        return [Remark(DISCOURAGED, "without RAS nobody can ask a hung job which rank is missing (ncclras)")]
    return []


def _ras_address(setting: Setting, _context: Context) -> list[Remark]:
    if setting.value.rpartition(":")[0] not in ("localhost", "127.0.0.1", "[::1]", ""):
        return [Remark(DISCOURAGED, "anyone who reaches this address can query the job; keep it at localhost")]
    return []


def _proto(setting: Setting, _context: Context) -> list[Remark]:
    if "LL128" in setting.value.upper() and "^" not in setting.value:
        return [Remark(DISCOURAGED, "LL128 on a platform that does not support it can corrupt data; let NCCL choose")]
    return []


def _psk(setting: Setting, _context: Context) -> list[Remark]:
    if 0 < len(setting.value) < _PSK:
        return [Remark(CONTRADICTION, f"{len(setting.value)} characters; NCCL refuses a key shorter than {_PSK}")]
    return []


def _adaptive(setting: Setting, context: Context) -> list[Remark]:
    if context.facts is None and not setting.spoiled:
        return [Remark(OK, "default 1 on InfiniBand and 0 on RoCE; 1 needs a service level or a fabric with it")]
    return []


def _cross_nic(setting: Setting, context: Context) -> list[Remark]:
    text = {
        0: "right only for rails whose switches are joined slowly",
        1: "right only where all NICs of a node share a switch",
    }
    value = number(setting)
    if context.facts is None and value in text:
        return [Remark(OK, f"{value} is {text[value]}; 2 (the default) suits the others")]
    return []


SPECIAL: dict[str, Special] = {
    "NCCL_IB_TIMEOUT": _timeout,
    "NCCL_IB_HCA": _hca,
    "NCCL_SOCKET_IFNAME": _ifname,
    "NCCL_OOB_NET_IFNAME": _ifname,
    "NCCL_IB_GID_INDEX": _gid_index,
    "NCCL_IB_ADDR_FAMILY": _gid_choice,
    "NCCL_IB_ADDR_RANGE": _gid_choice,
    "NCCL_IB_ROCE_VERSION_NUM": _gid_choice,
    "NCCL_NET_GDR_LEVEL": _level,
    "NCCL_IB_GDR_LEVEL": _level,
    "NCCL_P2P_LEVEL": _level,
    "NCCL_DEBUG": _debug,
    "NCCL_TOPO_DUMP_FILE": _dump_file,
    "NCCL_IB_TC": _traffic_class,
    "NCCL_IB_FIFO_TC": _traffic_class,
    "NCCL_IB_SPLIT_DATA_ON_QPS": _split,
    "NCCL_IB_QPS_PER_CONNECTION": _queue_pairs,
    "NCCL_SOCKET_NTHREADS": _sockets,
    "NCCL_NSOCKS_PERTHREAD": _sockets,
    "NCCL_MIN_CTAS": _ctas,
    "NCCL_MAX_CTAS": _ctas,
    "NCCL_MIN_NCHANNELS": _channels,
    "NCCL_LAUNCH_MODE": _launch_mode,
    "NCCL_CONF_FILE": _conf_file,
    "NCCL_IB_PKEY": _pkey,
    "NCCL_IB_AR_THRESHOLD": _threshold,
    "NCCL_RAS_ENABLE": _ras,
    "NCCL_RAS_ADDR": _ras_address,
    "NCCL_PROTO": _proto,
    "NCCL_PSK": _psk,
    "NCCL_IB_ADAPTIVE_ROUTING": _adaptive,
    "NCCL_CROSS_NIC": _cross_nic,
}
