"""Settings are read as NCCL, a shell and the environment read them, and the right one wins."""

from __future__ import annotations

import pytest
from weaklink.lint.parse import COMMENT, CONF, ENVIRONMENT, QUOTES, RETURN, SCRIPT, SPACE, InputError, Source, read
from weaklink.lint.precedence import resolve
from weaklink.lint.selection import parse
from weaklink.lint.values import strtoll
from weaklink.lint.version import NEWEST, Version, version


def conf(text: str, name: str = "/etc/nccl.conf") -> Source:
    return read(name, text.encode())


def pairs(source: Source) -> list[tuple[str, str, int]]:
    return [(setting.name, setting.value, setting.line) for setting in source.settings]


def test_everything_after_the_first_equals_sign_is_the_value() -> None:
    source = conf("# a comment\nNCCL_IB_HCA==mlx5_0,mlx5_1\n\nNCCL_DEBUG=WARN")
    assert pairs(source) == [("NCCL_IB_HCA", "=mlx5_0,mlx5_1", 2), ("NCCL_DEBUG", "WARN", 4)]
    assert source.form == CONF
    assert all(not setting.spoiled for setting in source.settings)


@pytest.mark.parametrize(
    ("raw", "value", "flaw"),
    [
        ("eth0  # boot", "eth0", COMMENT),
        (" eth0", "eth0", SPACE),
        ('"eth0"', "eth0", QUOTES),
        ("eth0\r", "eth0", RETURN),
    ],
)
def test_what_does_not_belong_to_a_value_is_told_apart_from_it(raw: str, value: str, flaw: str) -> None:
    setting = conf(f"NCCL_SOCKET_IFNAME={raw}\n").settings[0]
    assert (setting.value, setting.raw, setting.spoiled) == (value, raw, (flaw,))


def test_a_comment_belongs_to_the_setting_below_it_and_to_no_other() -> None:
    source = conf("# seconds\nNCCL_IB_TIMEOUT=22\nNCCL_IB_RETRY_CNT=6\n# ms\n\nNCCL_IB_TC=106\n")
    assert [setting.comment for setting in source.settings] == ["seconds", "", ""]


@pytest.mark.parametrize("line", [" NCCL_IB_TC=106", "export NCCL_IB_TC=106", "NCCL_IB_TC =106", "NCCL_IB_TC 106"])
def test_a_line_that_nccl_does_not_understand_sets_nothing_and_is_reported(line: str) -> None:
    source = conf(line)
    assert source.settings == ()
    assert [(oddity.subject, oddity.klass, oddity.effective) for oddity in source.oddities] == [
        ("NCCL_IB_TC", "contradiction", False)
    ]


def test_an_indented_comment_sets_nothing_and_is_no_mistake() -> None:
    assert conf("  # NCCL_IB_TC=106\n")[2:] == ((), ())


def test_a_script_is_read_as_a_shell_reads_it() -> None:
    text = (
        "#!/bin/bash\n"
        "#SBATCH --nodes=2\n"
        "export NCCL_IB_HCA='=mlx5_0,mlx5_1' NCCL_DEBUG=WARN  # two\n"
        "NCCL_IB_TC=106 srun --export=ALL,NCCL_IB_SL=1 ./a.out\n"
        "mpirun -x NCCL_CROSS_NIC=0 \\\n  -x NCCL_IB_TIMEOUT=22 ./b\n"
        'export NCCL_SOCKET_IFNAME="$IFACE"\n'
        "# export NCCL_ALGO=Ring\n"
        "export NCCL_PROTO=Simple\nunset NCCL_PROTO\n"
    )
    source = read("job.sbatch", text.encode())
    assert source.form == SCRIPT
    assert pairs(source) == [
        ("NCCL_IB_HCA", "=mlx5_0,mlx5_1", 3),
        ("NCCL_DEBUG", "WARN", 3),
        ("NCCL_IB_TC", "106", 4),
        ("NCCL_IB_SL", "1", 4),
        ("NCCL_CROSS_NIC", "0", 5),
        ("NCCL_IB_TIMEOUT", "22", 5),
        ("NCCL_SOCKET_IFNAME", "$IFACE", 7),
    ]
    assert [setting.name for setting in source.settings if setting.dynamic] == ["NCCL_SOCKET_IFNAME"]
    assert source.settings[0].comment == "two"


@pytest.mark.parametrize("data", [b"PATH=/bin\nNCCL_IB_TC=106\n", b"PATH=/bin\0NCCL_IB_TC=106\0"])
def test_an_environment_is_read_from_env_and_from_proc(data: bytes) -> None:
    source = read("dump", data)
    assert (source.form, pairs(source)) == (ENVIRONMENT, [("NCCL_IB_TC", "106", 2)])


@pytest.mark.parametrize(
    ("data", "place"),
    [(b"\x7fELF\0\0\1", "byte 4 is NUL"), (b"NCCL_DEBUG=WARN\n\xff\xfe", "nccl.conf:2: byte 0xff")],
)
def test_a_binary_file_is_refused_with_the_place(data: bytes, place: str) -> None:
    with pytest.raises(InputError, match=place):
        read("nccl.conf", data)


def test_environment_then_user_then_system() -> None:
    sources = [
        conf("NCCL_IB_TC=1\nNCCL_IB_SL=1\nNCCL_DEBUG=WARN\n"),
        conf("NCCL_IB_TC=2\nNCCL_IB_SL=2\n", "/home/a/.nccl.conf"),
        read("job.sh", b"export NCCL_IB_TC=3\nexport NCCL_IB_TC=4\n"),
    ]
    winners = resolve(sources, NEWEST).winners
    assert {name: setting.value for name, setting in winners.items()} == {
        "NCCL_IB_TC": "4",
        "NCCL_IB_SL": "2",
        "NCCL_DEBUG": "WARN",
    }


def test_in_one_configuration_file_the_first_line_wins() -> None:
    outcome = resolve([conf("NCCL_IB_TC=1\nNCCL_IB_TC=2\n")], NEWEST)
    assert outcome.winners["NCCL_IB_TC"].value == "1"
    assert [(lost.setting.value, lost.winner and lost.winner.line) for lost in outcome.lost] == [("2", 1)]


@pytest.mark.parametrize(("at", "value"), [(Version(2, 22), "user"), (Version(2, 23), "named")])
def test_a_named_file_replaces_the_users_since_2_23(at: Version, value: str) -> None:
    sources = [
        conf("NCCL_NET=user\n", "/home/a/.nccl.conf"),
        conf("NCCL_NET=named\n", "/site/other.conf"),
        conf("NCCL_NET=system\n"),
    ]
    outcome = resolve(sources, at)
    assert outcome.winners["NCCL_NET"].value == value
    assert sorted(lost.setting.value for lost in outcome.lost) == sorted({"user", "named", "system"} - {value})
    assert [lost.setting.value for lost in outcome.lost if lost.winner is None] == [
        {"named": "user"}.get(value, "named")
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("2.27.3", (2, 27, 3)), ("2.5", (2, 5, 0)), ("2.27.3-1+cuda12.9", (2, 27, 3)), ("22703", (2, 27, 3))],
)
def test_versions_are_read_in_all_their_spellings(text: str, wanted: tuple[int, int, int]) -> None:
    assert tuple(version(text)) == wanted


@pytest.mark.parametrize("text", ["", "2", "two", "2.x", "2.27.3.4", "-2.27", "2.27.3\n2"])
def test_a_bad_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version of NCCL"):
        version(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("22", (22, "")),
        ("0x16", (22, "")),
        ("010", (8, "")),
        ("4M", (4, "M")),
        (" 7 x", (7, " x")),
        ("-1", (-1, "")),
        ("x", (None, "x")),
    ],
)
def test_numbers_are_read_as_c_reads_them(text: str, wanted: tuple[int | None, str]) -> None:
    assert strtoll(text) == wanted


@pytest.mark.parametrize(
    ("value", "selected"),
    [
        ("mlx5_1", ["mlx5_1", "mlx5_10", "mlx5_11"]),
        ("=mlx5_1", ["mlx5_1"]),
        ("^mlx5_1", ["mlx5_0", "mlx5_2"]),
        ("^=mlx5_1", ["mlx5_0", "mlx5_2", "mlx5_10", "mlx5_11"]),
        ("=mlx5_0:1,mlx5_2:2", ["mlx5_0"]),
        ("=mlx5_0::0:1", ["mlx5_0"]),
        ("mlx5", ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10", "mlx5_11"]),
    ],
)
def test_lists_of_hcas_select_what_nccl_selects(value: str, selected: list[str]) -> None:
    names = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10", "mlx5_11"]
    assert [name for name in names if parse(value).selects(name)] == selected
