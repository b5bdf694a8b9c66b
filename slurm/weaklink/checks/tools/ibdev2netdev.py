"""Judge what ibdev2netdev says: devices present, interfaces up, or with -v the ports' own state. Pure."""

from weaklink.checks.tools.base import Context, Judged, say
from weaklink.checks.tools.ib_links import judge_ports, names, picked, rules
from weaklink.model.finding import FAIL, Finding
from weaklink.observe.tools.ib_ports import Ports
from weaklink.observe.tools.ibdev2netdev import NAME

RULES = picked(NAME, "ran", "device_present", "port_state", "netdev")


def judge(record: Ports, context: Context) -> Judged:
    """Return facts hcas, up, down, bad (devices), netdev by device, and what is wrong.

    An interface that is down stands for an Ethernet port that is down. Under InfiniBand it is IPoIB's, which says
    nothing of the port. Where the context has PCI addresses alone (expected_hcas), the devices at them count.
    """
    wanted = [_address(text) for text in names(context, "expected_hcas") or ()] if record.addresses else []
    if wanted and context.get("compute_hcas") is None:
        context = {**context, "compute_hcas": [name for name, address in record.addresses if address in wanted]}
    judged = judge_ports(NAME, record, context, netdev_is_link=True)
    lost = [] if record.troubles else _lost(record, wanted)
    judged = judged._replace(findings=(*lost, *judged.findings))
    up = dict.fromkeys(port.device for port in record.ports if port.netdev_up)
    down = dict.fromkeys(port.device for port in record.ports if port.netdev_up is False)
    facts = {
        **judged.facts,
        "up": list(up),
        "down": list(down),
        "bad": list(
            dict.fromkeys(name.partition("/")[0] for name in (*judged.facts["bad"], *(f.subject for f in lost)))
        ),
        "netdev": {
            **{port.name: port.netdev for port in record.ports},
            **{port.device: port.netdev for port in reversed(record.ports)},
        },
    }
    return judged._replace(facts=facts)


def _address(text: str) -> str:
    """Return a PCI address as the tool prints it: lower case, with its domain."""
    return text.lower() if text.count(":") > 1 else f"0000:{text.lower()}"


def _lost(record: Ports, wanted: "list[str]") -> "list[Finding]":
    rule = rules(NAME)["device_present"]
    listed = {address for _, address in record.addresses}
    said = "no RDMA device, though it is one of expected_hcas"
    return [say(rule, address, FAIL, f"{address}: {said}") for address in wanted if address not in listed]
