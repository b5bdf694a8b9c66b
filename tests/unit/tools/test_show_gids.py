"""Reading and judging GID tables."""

from __future__ import annotations

import pytest

from tests.unit.tools.cases import case_of, text_of
from tests.unit.tools.ib_reading import a_cut_never_heals, holds_case, judged, reader, said, survives

BOND = text_of("035")
CONTEXT = case_of("035")["context"]
HEAD = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a2c:1f05"
GLOBAL = "2001:0db8:0000:0000:0000:0000:0000:0005"
LOCAL = "fe80:0000:0000:0000:bace:f6ff:fe2d:7110"


def table(*rows: str) -> str:
    return HEAD + "".join(f"{row}\n" for row in rows) + f"n_gids_found={len(rows)}\n"


def sysfs(form: str) -> str:
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    entries = {
        "gids/0": LOCAL,
        "gids/1": LOCAL,
        "gids/2": MAPPED,
        "gids/3": MAPPED,
        "gids/4": "0000:0000:0000:0000:0000:0000:0000:0000",
        **{f"gid_attrs/types/{slot}": f"{'IB/RoCE v1' if slot % 2 == 0 else 'RoCE v2'}" for slot in range(4)},
        **{f"gid_attrs/ndevs/{slot}": "ens1" for slot in range(4)},
    }
    return "".join(form.format(path=f"{base}/{name}", value=value) for name, value in entries.items())


def test_the_case_is_judged_right() -> None:
    holds_case("035")


@pytest.mark.parametrize("form", ["{path}:{value}\n", "==> {path} <==\n{value}\n\n"])
def test_a_listing_of_sysfs_says_the_same_as_the_script(form: str) -> None:
    found = judged("show_gids", sysfs(form), {"netdev": {"mlx5_0": "ens1"}, "ip_version": 4})
    assert reader("show_gids").recognise(sysfs(form)) == 90
    assert (found.verdict, found.facts["gid_index"], found.facts["gids_found"]) == ("ok", {"mlx5_0": 3}, 4)


def test_an_index_that_is_configured_must_be_of_the_right_version_address_and_interface() -> None:
    for wrong in (0, 1, 2, 3, 4, 9):
        context = {**CONTEXT, "configured_gid_index": wrong}
        assert said("show_gids", BOND, context) == ("fail", "gid-index-wrong")
        assert said("show_gids", BOND, {**CONTEXT, "configured_gid_index": {"mlx5_bond_0": wrong}})[0] == "fail"
    assert said("show_gids", BOND, {**CONTEXT, "configured_gid_index": 5}) == ("ok", "healthy")


def test_no_entry_of_the_kind_demanded_is_a_fault() -> None:
    text = table(f"mlx5_0\t1\t0\t{LOCAL}\t\t\tv1\tens1", f"mlx5_0\t1\t1\t{LOCAL}\t\t\tv2\tens1")
    found = judged("show_gids", text, {"netdev": {"mlx5_0": "ens1"}, "ip_version": 4})
    assert (found.verdict, found.cause, found.facts["gid_index"]) == ("fail", "gid-index-wrong", {"mlx5_0": None})
    assert said("show_gids", text, {"netdev": {"mlx5_0": "ens1"}, "ip_version": 6}) == ("ok", "healthy")


def test_a_global_address_goes_before_a_link_local_one_and_ipv4_before_both() -> None:
    rows = [f"mlx5_0\t1\t1\t{LOCAL}\t\t\tv2\tens1", f"mlx5_0\t1\t3\t{GLOBAL}\t\t\tv2\tens1"]
    six = {"netdev": {"mlx5_0": "ens1"}, "ip_version": 6}
    assert judged("show_gids", table(*rows), six).facts["gid_index"] == {"mlx5_0": 3}
    both = table(*rows, f"mlx5_0\t1\t7\t{MAPPED}\t10.44.31.5  \tv2\tens1")
    assert judged("show_gids", both).facts["gid_index"] == {"mlx5_0": 7}
    assert judged("show_gids", both, six).facts["gid_index"] == {"mlx5_0": 3}


def test_blanks_for_tabs_a_missing_interface_and_long_names_of_versions_are_read() -> None:
    text = table(f"mlx5_1  1       0       {LOCAL}                 IB/RoCE v1", f"mlx5_1 1 1 {LOCAL}  RoCE v2 N/A")
    facts = judged("show_gids", text).facts
    assert (facts["gids_found"], facts["gid_index"]) == (2, {"mlx5_1": 1})


def test_fewer_rows_than_were_found_mean_a_cut() -> None:
    lines = BOND.splitlines()
    assert said("show_gids", "\n".join([*lines[:-2], lines[-1]]), CONTEXT) == ("unknown", "output-truncated")
    assert judged("show_gids", "\n".join(lines[:-1]), CONTEXT).facts["gids_found"] is None


def test_a_wrong_ip_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="ip_version"):
        judged("show_gids", BOND, {"ip_version": 5})


def test_a_cut_never_heals_and_damage_is_survived() -> None:
    a_cut_never_heals("show_gids", BOND, {**CONTEXT, "configured_gid_index": 3})
    survives("show_gids", BOND, CONTEXT)
    survives("show_gids", sysfs("{path}:{value}\n"), CONTEXT)


def test_a_whole_and_empty_table_has_no_index_to_use() -> None:
    found = judged("show_gids", table(), CONTEXT)
    assert (found.verdict, found.cause, found.facts["gids_found"]) == ("fail", "gid-index-wrong", 0)
    assert said("show_gids", table()) == ("unknown", "nothing-tested")
    assert said("show_gids", HEAD, CONTEXT) == ("unknown", "output-truncated")


def test_an_address_that_a_host_gave_itself_comes_after_one_that_it_was_given() -> None:
    own = "0000:0000:0000:0000:0000:ffff:a9fe:0102"
    rows = (
        f"mlx5_0\t1\t2\t{own}\t169.254.1.2  \tv2\tens1",
        f"mlx5_0\t1\t3\t{MAPPED}\t10.44.31.5  \tv2\tens1",
    )
    context = {"netdev": {"mlx5_0": "ens1"}, "ip_version": 4}
    assert judged("show_gids", table(*rows), context).facts["gid_index"] == {"mlx5_0": 3}
    assert judged("show_gids", table(rows[0]), context).facts["gid_index"] == {"mlx5_0": 2}
