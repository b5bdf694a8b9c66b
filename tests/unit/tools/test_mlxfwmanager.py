"""mlxfwmanager: table and XML, one card and several, cards that could not be opened."""

from __future__ import annotations

import pytest

from tests.unit.tools.mlx_cuts import tool

MANAGER = tool("mlxfwmanager")


def card(
    number: int, burned: str, running: str | None = None, pci: str = "0000:41:00.0", psid: str = "MT_0000000838"
) -> str:
    rows = [f"     FW             {burned}     N/A           "]
    if running:
        rows.append(f"     FW (Running)   {running}     N/A           ")
    head = f"""
Device #{number}:
----------

  Device Type:      ConnectX7
  Part Number:      MCX75310AAS-NEA_Ax
  Description:      NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP; PCIe 5.0 x16
  PSID:             {psid}
  PCI Device Name:  {pci}
  Base GUID:        9c63c00300abed5a
  Base MAC:         9c63c0abed5a
  Versions:         Current        Available     
"""  # noqa: W291 - the tool pads its table
    tail = "     PXE            3.8.0100       N/A           \n     UEFI           14.39.0014     N/A           \n"
    return head + "\n".join(rows) + "\n" + tail + "\n  Status:           No matching image found\n\n"


def xml(number: int, burned: str, running: str = "", pci: str = "0000:41:00.0") -> str:
    extra = f'<FW_Running current="{running}" available="N/A"/>\n' if running else ""
    return f"""    <Device pciName="{pci}" type="ConnectX7" psid="MT_0000000838" partNumber="MCX75310AAS-NEA_Ax">
      <Versions>
        <FW current="{burned}" available="28.47.1026"/>
        {extra}<PXE current="3.8.0100" available="N/A"/>
      </Versions>
      <MACs Base_Mac="9c63c0abed{number:02x}" />
      <Status>Up to date</Status>
      <Description>A card with &lt;brackets&gt; &amp; blanks</Description>
    </Device>
"""


HEAD = "Querying Mellanox devices firmware ...\n"
TABLE = HEAD + card(1, "28.47.1026", "28.46.3048")
XML = "<Devices>\n" + xml(1, "28.47.1026", "28.46.3048") + "</Devices>\n"


@pytest.mark.parametrize("text", [TABLE, XML, HEAD + XML])
def test_a_card_that_waits_for_a_reset_is_degraded(text: str) -> None:
    assert MANAGER.verdict(text, required_fw="28.47.1026") == ("degraded", "fw-reset-pending")
    facts = MANAGER.facts(text)
    assert (facts["devices"], facts["fw_version"], facts["fw_running"]) == (1, "28.47.1026", "28.46.3048")
    assert (facts["pending"], facts["psid"], facts["device"]) == (True, "MT_0000000838", "0000:41:00.0")


@pytest.mark.parametrize("text", [HEAD + card(1, "28.47.1026"), "<Devices>\n" + xml(1, "28.47.1026") + "</Devices>\n"])
def test_a_card_without_a_running_row_runs_what_is_burned(text: str) -> None:
    assert MANAGER.verdict(text, required_fw={"MT_0000000838": "28.47.1026"}) == ("ok", "healthy")
    assert (MANAGER.facts(text)["fw_running"], MANAGER.facts(text)["pending"]) == ("28.47.1026", False)
    assert MANAGER.verdict(text, required_fw="28.48.1000") == ("fail", "fw-version-wrong")


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("form", ["table", "xml"])
def test_facts_of_several_cards_are_by_pci_name(form: str, *, flip: bool) -> None:
    if form == "table":
        cards = [card(1, "28.47.1026", None, "0000:41:00.0"), card(2, "28.47.1026", "28.46.3048", "0000:b1:00.0")]
    else:
        cards = [xml(1, "28.47.1026", "", "0000:41:00.0"), xml(2, "28.47.1026", "28.46.3048", "0000:b1:00.0")]
    body = "".join(reversed(cards) if flip else cards)
    text = HEAD + body if form == "table" else f"<Devices>\n{body}</Devices>\n"
    facts = MANAGER.facts(text)
    assert facts["devices"] == 2
    assert facts["pending"] == ["0000:b1:00.0"]
    assert facts["fw_running"] == {"0000:41:00.0": "28.47.1026", "0000:b1:00.0": "28.46.3048"}
    assert MANAGER.verdict(text) == ("degraded", "fw-reset-pending")


def test_a_card_that_could_not_be_opened_is_unknown() -> None:
    text = """<Devices>
    <Device pciName="0000:b4:00.0" type="BlueField3" psid="" partNumber="--">
      <Versions>
        <FW current="--" available=""/>
      </Versions>
      <Status>Failed to open device</Status>
    </Device>
</Devices>
"""
    found = MANAGER.judged(text, required_fw="32.43.2402")
    assert found.verdict == "unknown"
    assert found.facts["fw_version"] is None
    assert any("Failed to open device" in finding.message for finding in found.findings)


def test_a_tool_without_devices_says_nothing() -> None:
    text = "-E- No devices found or specified, mst might be stopped, run 'mst start' to load MST modules\n"
    assert MANAGER.verdict(text, required_fw="28.47.1026") == ("unknown", "test-did-not-run")
    assert MANAGER.verdict("<Devices>\n</Devices>\n")[0] == "unknown"
    assert MANAGER.verdict("") == ("unknown", "output-truncated")
    assert MANAGER.verdict("-E- another card failed\n" + HEAD + card(1, "28.47.1026")) == ("ok", "healthy")


def test_rows_of_other_images_are_no_firmware() -> None:
    text = TABLE.replace("     UEFI  ", "     UEFI Virtio blk   22.4.0010      N/A\n     UEFI  ")
    assert MANAGER.facts(text)["fw_version"] == "28.47.1026"


def test_a_cut_text_is_never_ok() -> None:
    MANAGER.never_ok_when_cut(TABLE, step=1, required_fw="28.47.1026")
    MANAGER.never_ok_when_cut(XML, step=1, required_fw="28.47.1026")


@pytest.mark.parametrize("text", [TABLE, XML])
def test_damage_is_survived(text: str) -> None:
    MANAGER.survives(text, required_fw="28.47.1026")


def test_it_is_recognised() -> None:
    assert MANAGER.parser.recognise(TABLE) >= 90
    assert MANAGER.parser.recognise(XML) >= 90
