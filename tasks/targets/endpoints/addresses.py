"""Check which network addresses a call to a target may reach: public or allowed by the operator."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AllowedHosts = bool | tuple[str, ...]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Not public in practice, though `is_global` of some Python releases says so.
_REFUSED_NETWORKS: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's metadata and DNS
        "192.0.0.0/24",  # protocol assignments; Oracle Cloud's metadata
        "192.88.99.0/24",  # 6to4 relays
        "64:ff9b:1::/48",  # local NAT64
        "2001::/23",  # Teredo, ORCHID
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site-local
    )
)


def extract_embedded_address(address: Address) -> Address:
    """Return the IPv4 address inside a mapped, 6to4 or NAT64 address; others unchanged."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    # An IPv6 address may wrap a private IPv4 address, which the network then reaches.
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Return whether an address is a unicast address of the public internet."""
    actual_address = extract_embedded_address(address)
    return (
        actual_address.is_global
        and not (
            actual_address.is_multicast
            or actual_address.is_reserved
            or actual_address.is_link_local
        )
        and not (
            actual_address.is_loopback or actual_address.is_unspecified or actual_address.is_private
        )
        and not any(actual_address in network for network in _REFUSED_NETWORKS)
    )


def is_permitted(host: str, address: Address, allowed_hosts: AllowedHosts) -> bool:
    """Return whether a call to `host`, resolved to `address`, may be made.

    allowed_hosts: True or a listed host name permits loopback and private ranges. Link-local
    addresses (cloud metadata), multicast and the unspecified address are refused unless their
    network is listed.
    """
    if is_public(address):
        return True
    actual_address = extract_embedded_address(address)
    # Networks that the operator lists open everything in them, link-local addresses too.
    names, networks = _split_entries(allowed_hosts)
    if any(actual_address in network for network in networks):
        return True
    # A listed name opens loopback and private ranges only. Metadata servers of clouds are
    # link-local, and stay closed.
    is_private_range = actual_address.is_loopback or (
        actual_address.is_private
        and not (
            actual_address.is_link_local
            or actual_address.is_unspecified
            or actual_address.is_reserved
        )
        and not any(actual_address in network for network in _REFUSED_NETWORKS)
    )
    return is_private_range and (allowed_hosts is True or host.lower().rstrip(".") in names)


def _split_entries(allowed_hosts: AllowedHosts) -> tuple[set[str], list[Network]]:
    """Return the host names and the networks in the allow-list."""
    names: set[str] = set()
    networks: list[Network] = []
    for entry in allowed_hosts if isinstance(allowed_hosts, tuple) else ():
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            # What is no address or network is a host name.
            names.add(entry.lower().rstrip("."))
    return names, networks
