"""Judge what ibv_devinfo says: devices present, ports active, and the active MTU; rate and width with -v. Pure."""

from weaklink.checks.tools.base import Context, Judged
from weaklink.checks.tools.ib_links import judge_ports, picked
from weaklink.observe.tools.ib_ports import Ports
from weaklink.observe.tools.ibv_devinfo import NAME

RULES = picked(NAME, "ran", "device_present", "port_state", "link_layer", "port_rate", "active_mtu")


def judge(record: Ports, context: Context) -> Judged:
    """Return facts hcas, bad, ignored, state, active_mtu and rate_gbps by port, and what is wrong.

    Without -v no rate is printed: nothing is judged on that point then.
    """
    if all(port.lanes is None and port.speed is None for port in record.ports):
        context = {key: value for key, value in context.items() if key not in {"expected_rate_gbps", "expected_link"}}
    return judge_ports(NAME, record, context)
