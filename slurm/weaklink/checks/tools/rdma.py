"""Judge what iproute2's rdma says: links present, ACTIVE, with the interface demanded. Pure."""

from weaklink.checks.tools.base import Context, Judged
from weaklink.checks.tools.ib_links import judge_ports, picked
from weaklink.observe.tools.rdma import NAME, Rdma

RULES = picked(NAME, "ran", "device_present", "port_state", "link_layer", "netdev")


def judge(record: Rdma, context: Context) -> Judged:
    """Return facts links, state, phys_state, bad, netdev (by port, and by device), counters, and what is wrong."""
    judged = judge_ports(NAME, record.ports, context)
    ports = record.ports.ports
    facts = {
        **judged.facts,
        "links": len(ports),
        "netdev": {
            **{port.name: port.netdev for port in ports},
            **{port.device: port.netdev for port in reversed(ports)},
        },
    }
    if record.counters:
        facts["counters"] = {entry.port: entry.values for entry in record.counters}
        facts["links"] = len(ports) or len(record.counters)
    return judged._replace(facts=facts)
