"""Judge a port's QoS as mlnx_qos reports it. Pure."""

from typing import Any

from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close
from weaklink.checks.tools.eth_qos import CAUSES, DECIDES, REMEDY, Qos, judge_qos
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import FAIL
from weaklink.observe.tools.mlnx_qos import Record

QOS = Rule("mlnx_qos.qos", CAUSES, FAIL, DRAIN, DECIDES, REMEDY)
RULES = (QOS,)
_ALWAYS = frozenset({"trust", "pfc_on", "prio_tc", "dscp_map"})


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; keys as for all QoS readers."""
    buffers = None if record.buffers is None else dict(enumerate(record.buffers))
    qos = Qos(record.pfc, record.dscp_map, record.trust, record.prio_buffer, buffers)
    facts: dict[str, Any] = {
        "netdev": record.netdev,
        "trust": record.trust,
        "pfc_on": None if record.pfc is None else sorted(key for key, value in record.pfc.items() if value),
        "prio_tc": record.prio_tc,
        "dscp_map": record.dscp_map,
        "prio_buffer": record.prio_buffer,
        "buffer_size": None if record.buffers is None else list(record.buffers),
        "cable_m": record.cable_m,
        "dcbx": record.dcbx,
        "tc": {str(key): {"tsa": item.tsa, "bw": item.percent} for key, item in record.classes.items()},
    }
    facts = {key: value for key, value in facts.items() if value is not None or key in _ALWAYS}
    subject = record.netdev or "port"
    if record.complaints and record.pfc is None:
        return close("mlnx_qos", facts, [did_not_run("mlnx_qos", record.complaints)], record.troubles)
    return close("mlnx_qos", facts, list(judge_qos(QOS, subject, qos, context)), record.troubles)
