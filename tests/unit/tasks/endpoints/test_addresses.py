import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.targets.endpoints.addresses import is_permitted, is_public

PRIVATE_V4 = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
]  # fmt: skip
private_v4 = st.sampled_from(PRIVATE_V4).flatmap(
    lambda network: st.integers(int(network.network_address), int(network.broadcast_address)).map(
        ipaddress.IPv4Address
    )
)
public_v4 = st.ip_addresses(v=4).filter(
    lambda address: (
        not any(address in network for network in PRIVATE_V4)
        and str(address) != "168.63.129.16"
        and address not in ipaddress.ip_network("192.88.99.0/24")
    )
)


def wrapped(address: ipaddress.IPv4Address) -> list[ipaddress.IPv6Address]:
    """The IPv6 forms that lead to an IPv4 address: mapped, 6to4, NAT64."""
    number = int(address)
    return [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),
        ipaddress.IPv6Address((0x0064FF9B << 96) | number),
    ]


@given(private_v4)
def test_private_addresses_are_refused_in_every_form(address: ipaddress.IPv4Address) -> None:
    assert not is_public(address)
    assert not any(is_public(form) for form in wrapped(address))


@given(public_v4)
def test_public_addresses_pass_in_every_form(address: ipaddress.IPv4Address) -> None:
    assert is_public(address)
    assert all(is_public(form) for form in wrapped(address))


@pytest.mark.parametrize(
    "text",
    [
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
        "2001:db8::1", "2001::1", "64:ff9b:1::1", "::127.0.0.1", "100::1", "168.63.129.16",
        "169.254.169.254", "100.100.100.200", "192.0.0.192", "255.255.255.255",
    ],
)  # fmt: skip
def test_special_addresses_are_not_public(text: str) -> None:
    address = ipaddress.ip_address(text)
    assert not is_public(address)
    assert not is_permitted("target.example", address, False)
    assert not is_permitted("target.example", address, ("other.example", "10.0.0.0/8"))


@pytest.mark.parametrize("text", ["2606:4700:4700::1111", "2a00:1450:4001::1", "9.9.9.9"])
def test_ordinary_addresses_are_public(text: str) -> None:
    assert is_permitted("target.example", ipaddress.ip_address(text), False)


@pytest.mark.parametrize(
    ("host", "address", "allowed", "permitted"),
    [
        ("localhost", "127.0.0.1", True, True),
        ("model", "10.1.2.3", True, True),
        ("model", "fd00::1", True, True),
        ("model", "::ffff:10.1.2.3", True, True),
        ("model", "169.254.169.254", True, False),
        ("model", "0.0.0.0", True, False),
        ("model", "224.0.0.1", True, False),
        ("model", "168.63.129.16", True, False),
        ("model", "10.1.2.3", ("model",), True),
        ("MODEL.", "10.1.2.3", ("model",), True),
        ("model", "10.1.2.3", ("Model.",), True),
        ("model2", "10.1.2.3", ("model",), False),
        ("model", "169.254.169.254", ("model",), False),
        ("model", "169.254.169.254", ("169.254.169.254",), True),
        ("model", "10.1.2.3", ("10.1.0.0/16",), True),
        ("model", "10.2.2.3", ("10.1.0.0/16",), False),
        ("model", "::ffff:10.1.2.3", ("10.1.0.0/16",), True),
        ("model", "fd00::1", ("10.1.0.0/16", "fd00::/8"), True),
        ("model", "10.1.2.3", (), False),
    ],
)
def test_the_operator_may_open_hosts_and_networks(
    host: str, address: str, allowed: bool | tuple[str, ...], permitted: bool
) -> None:
    assert is_permitted(host, ipaddress.ip_address(address), allowed) is permitted
