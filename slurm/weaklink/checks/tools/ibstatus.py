"""Judge what ibstatus says: devices present, ports ACTIVE, configured by a subnet manager, fast enough. Pure."""

from weaklink.checks.tools.base import Context, Judged
from weaklink.checks.tools.ib_links import judge_ports, picked
from weaklink.observe.tools.ib_ports import Ports
from weaklink.observe.tools.ibstatus import NAME

RULES = picked(NAME, "ran", "device_present", "port_state", "link_layer", "port_rate")


def judge(record: Ports, context: Context) -> Judged:
    """Return facts hcas, bad, ignored, state, phys_state, rate_gbps by port, and what is wrong."""
    return judge_ports(NAME, record, context)
