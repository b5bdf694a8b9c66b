"""Judge opensm.conf: keys that opensm ignores, values that it replaces, settings that take effect only together. Pure.

By opensm 3.3.23: an unknown key is reported as ``Unrecognized token`` and ignored, a value out of range is replaced.
NVIDIA's opensm knows many more keys: only one that looks like a misspelt known one is called wrong.
"""

from typing import Optional

from weaklink.checks.tools.base import NOTE, Context, Judged, Rule, close, demand, say
from weaklink.checks.tools.opensm_keys import ENGINES, KEYS
from weaklink.model.finding import DEGRADED, FAIL, Finding
from weaklink.model.words import nearest
from weaklink.observe.tools.opensm_conf import NAME, Settings
from weaklink.observe.tools.text import Trouble, integer

KEY = Rule(
    f"{NAME}.key",
    ("setting-ignored",),
    DEGRADED,
    NOTE,
    "opensm ignores a key that it does not know; of several lines of a key the last holds.",
    "Correct the key; opensm -c FILE writes a file with all of them.",
)
ROUTING = Rule(
    f"{NAME}.routing",
    ("topology-invalid",),
    DEGRADED,
    NOTE,
    "Each engine of routing_engine must be one that opensm has. With no_fallback after one engine alone the fabric is "
    "not routed at all once that engine can't, for example ftree after one lost uplink.",
    "Name a second engine, as in ftree,updn, which routes what the first can't.",
)
RANGE = Rule(
    f"{NAME}.range",
    ("setting-ignored",),
    DEGRADED,
    NOTE,
    "lmc is 0 to 7, sm_priority 0 to 15: opensm replaces another value by its default.",
    "Write a value in range.",
)
INACTIVE = Rule(
    f"{NAME}.active",
    ("no-subnet-manager",),
    FAIL,
    NOTE,
    "With sm_inactive TRUE opensm starts, but manages no subnet.",
    "Set sm_inactive FALSE unless another subnet manager is master.",
)
QOS = Rule(
    f"{NAME}.qos",
    ("qos-not-configured",),
    DEGRADED,
    NOTE,
    "qos_* settings take effect only with qos TRUE.",
    "Set qos TRUE, or remove the others.",
)
SPEED = Rule(
    f"{NAME}.speed",
    ("link-below-capability",),
    DEGRADED,
    NOTE,
    "force_link_speed_ext 30 turns off all speeds above QDR on every link.",
    "Set force_link_speed_ext 31 (what the ports support).",
)
REQUIRED = Rule(
    f"{NAME}.required",
    ("setting-wrong",),
    FAIL,
    NOTE,
    "Where the context demands a value of a setting, it must hold.",
    "Set the value and restart opensm.",
)
RULES = (INACTIVE, REQUIRED, ROUTING, RANGE, QOS, SPEED, KEY)

_RANGES = {"lmc": 7, "sm_priority": 15}
_DEFAULT_QOS = frozenset({"qos_policy_file", "qos_max_vls", "qos_high_limit"})


def judge(record: Settings, context: Context) -> Judged:
    """Return facts settings (that hold), unknown_keys, duplicates, and what is wrong. ``required``: name to value."""
    values = {setting.key: setting.value for setting in record.settings}
    findings: list[Finding] = []
    if _true(values.get("sm_inactive")):
        findings.append(say(INACTIVE, "sm_inactive", FAIL, "sm_inactive TRUE: it manages no subnet"))
    for key, wanted in demand(context, "required", dict, {}).items():
        if str(values.get(key)).lower() != str(wanted).lower():
            findings.append(say(REQUIRED, key, FAIL, f"{key} {values.get(key)}, wanted {wanted}"))
    findings += [*_routing(values.get("routing_engine")), *_ranges(values), *_qos(values)]
    if integer(values.get("force_link_speed_ext")) == 30:  # noqa: PLR2004 - opensm.conf's own number for "disable"
        findings.append(say(SPEED, "force_link_speed_ext", DEGRADED, "force_link_speed_ext 30: no speed above QDR"))
    unknown = [setting for setting in record.settings if setting.key not in KEYS]
    for setting in unknown:
        near = nearest(setting.key, KEYS, 0.85)
        if near and near not in values:
            found = f"line {setting.line}: {setting.key} is no key of opensm; {near} is"
            findings.append(say(KEY, setting.key, DEGRADED, found))
    twice = _duplicates(record)
    findings += [
        say(KEY, key, DEGRADED, f"{key} is set more than once, to {', '.join(said)}") for key, said in twice.items()
    ]
    troubles = list(record.troubles)
    if record.settings and len(unknown) == len(record.settings):
        troubles.append(Trouble(0, "no key of opensm in it"))
    facts = {"settings": values, "unknown_keys": [setting.key for setting in unknown], "duplicates": sorted(twice)}
    return close(NAME, facts, findings, troubles, f"{NAME}: {len(values)} settings, none is ignored")


def _true(value: Optional[str]) -> bool:
    return (value or "").upper() in {"TRUE", "YES", "1"}


def _duplicates(record: Settings) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for setting in record.settings:
        if setting.key not in KEYS:
            continue
        values = said.setdefault(setting.key, [])
        if str(setting.value) not in values:
            values.append(str(setting.value))
    return {key: values for key, values in said.items() if len(values) > 1}


def _routing(value: Optional[str]) -> list[Finding]:
    engines = [word.strip() for word in (value or "").split(",") if word.strip()]
    unknown = [word for word in engines if word.lower() not in ENGINES]
    if unknown:
        return [
            say(ROUTING, "routing_engine", DEGRADED, f"routing_engine: {', '.join(unknown)} is no engine of opensm")
        ]
    if "no_fallback" in engines and len(engines) == 2:  # noqa: PLR2004 - one engine and no_fallback
        return [
            say(
                ROUTING, "routing_engine", DEGRADED, f"routing_engine {value}: one engine, and no other to fall back to"
            )
        ]
    return []


def _ranges(values: dict[str, Optional[str]]) -> list[Finding]:
    findings = []
    for key, most in _RANGES.items():
        text = values.get(key)
        found = integer(text)
        if text is not None and (found is None or not 0 <= found <= most):
            findings.append(say(RANGE, key, DEGRADED, f"{key} {text}: wanted 0 to {most}"))
    return findings


def _qos(values: dict[str, Optional[str]]) -> list[Finding]:
    if _true(values.get("qos")):
        return []
    idle = [
        key
        for key, value in values.items()
        if key.startswith("qos_") and key not in _DEFAULT_QOS and value not in {None, "0", "-1"}
    ]
    if not idle:
        return []
    return [say(QOS, "qos", DEGRADED, f"qos is not TRUE: {', '.join(idle[:5])} have no effect")]
