"""Link domains that a group of ranks spans, and how many of its ranks are in each of them."""

from __future__ import annotations

import math
from typing import Annotated, Final

import numpy as np

from whatif import units
from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.placement import each_distinct
from whatif.models.quantities import Core, Count, FloatArray, IntArray, model

GroupDomains = Annotated[FloatArray, units.ONE, Core("number")]
DOMAINS, MOST, LEAST = range(3)
"""Numbers of a group: its domains, and its ranks in the domains with the most and with the fewest of them."""
_COUNTED: Final = "counted from the placement"


@model("D, max m_i and min m_i of the group with the least min m_i", _COUNTED)
def group_domains(group_size: Count, group_stride: Count, rank_count: Count, domain_rank_count: Count) -> GroupDomains:
    """Domains of a group of s ranks, t apart, and its most and fewest ranks in one of them, [..., 3].

    It is the group that has the fewest ranks, and so ports, in some domain; m_i are its ranks in the domain i. Ranks
    fill domains of d in order and groups follow each other, so that a group may begin anywhere in a domain: of 192
    ranks in groups of 64 the second group has 8 ranks in the first domain of 72 and 56 in the next. A group in one
    domain counts if all are. Valid for whole numbers ≥ 1; NaN for others whose groups neither fill domains nor divide
    them, and for more than `MOST_RANKS` of such groups.
    """
    counts = np.broadcast_arrays(group_size, group_stride, rank_count, domain_rank_count)
    size, stride, _, in_domain = counts
    spanned = size * stride
    # Most groups fill domains, or domains are filled with groups; the others begin anywhere.
    apart, inside = (stride >= in_domain) | (size == 1), in_domain % spanned == 0
    filling = (spanned % in_domain == 0) & (in_domain % stride == 0)
    members = np.select([apart, inside, filling], [np.ones_like(size), size, in_domain / stride], np.nan)
    numbers = np.stack([size / members, members, members], axis=-1)
    other = np.isnan(members)
    if other.any():
        numbers[other] = each_distinct([count[other] for count in counts], _numbers, (3,))
    return numbers


@model("one of D, max m_i, min m_i", _COUNTED)
def number_of(numbers: GroupDomains, *, number: int) -> Count:
    """Number of a group: `DOMAINS`, `MOST` or `LEAST`."""
    return np.asarray(numbers[..., number])


def _numbers(row: FloatArray) -> FloatArray | None:
    if not is_count(row, most=2**53).all() or row[2] > MOST_RANKS * row[0]:
        return None
    size, stride, ranks, in_domain = map(int, row)
    starts = _starts(size * stride, stride, ranks, in_domain)
    domains = (starts + (size - 1) * stride) // in_domain + 1
    spans = domains > 1
    if not spans.any():
        return np.array([1.0, size, size])
    return _worst(size, stride, in_domain, starts[spans], domains[spans])


def _starts(spanned: int, stride: int, ranks: int, in_domain: int) -> IntArray:
    """Places in a domain at which groups begin."""
    turns = min(max(ranks // spanned, 1), in_domain // math.gcd(spanned, in_domain))
    return np.unique(np.add.outer(np.arange(turns) * spanned, np.arange(stride)) % in_domain)


def _worst(size: int, stride: int, in_domain: int, starts: IntArray, domains: IntArray) -> FloatArray:
    """Numbers of the group with the fewest ranks in a domain, of equal ones that over the most domains."""
    first = -(-(in_domain - starts) // stride)
    last = size + ((starts - (domains - 1) * in_domain) // stride)
    between = np.where(domains > 2, (size - first - last) / np.maximum(domains - 2, 1), first)
    fewest = np.minimum.reduce([first, last, np.floor(between)])
    most = np.maximum.reduce([first, last, np.ceil(between)])
    worst = np.lexsort((-most, -domains, fewest))[0]
    return np.array([domains[worst], most[worst], fewest[worst]])
