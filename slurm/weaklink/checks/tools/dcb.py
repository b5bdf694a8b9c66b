"""Judge a port's QoS as dcb of iproute2 reports it. Pure."""

from typing import Any

from weaklink.checks.tools.base import DRAIN, Context, Judged, Rule, close
from weaklink.checks.tools.eth_qos import CAUSES, DECIDES, REMEDY, Qos, judge_qos
from weaklink.checks.tools.mlx_common import did_not_run
from weaklink.model.finding import FAIL
from weaklink.observe.tools.dcb import Record

QOS = Rule("dcb.qos", CAUSES, FAIL, DRAIN, DECIDES, REMEDY)
RULES = (QOS,)
_ALWAYS = frozenset({"trust", "pfc_on", "prio_tc", "dscp_map"})


def judge(record: Record, context: Context) -> Judged:
    """Return facts and findings; keys as for all QoS readers."""
    qos = Qos(record.pfc, record.dscp_map, record.trust, record.prio_buffer, record.buffers)
    facts: dict[str, Any] = {
        "pfc_on": None if record.pfc is None else sorted(key for key, value in record.pfc.items() if value),
        "priorities_listed": None if record.pfc is None else len(record.pfc),
        "dscp_map": record.dscp_map,
        "prio_tc": record.prio_tc,
        "tc_bw": record.tc_bw,
        "tc_tsa": record.tc_tsa,
        "prio_buffer": record.prio_buffer,
        "buffer_size": record.buffers,
        "dcbx": record.dcbx,
        "trust": record.trust,
        "counts": record.counts,
    }
    facts = {key: value for key, value in facts.items() if value is not None or key in _ALWAYS}
    if record.complaints and record.pfc is None and record.dscp_map is None:
        return close("dcb", facts, [did_not_run("dcb", record.complaints)], record.troubles)
    return close("dcb", facts, list(judge_qos(QOS, "port", qos, context)), record.troubles)
