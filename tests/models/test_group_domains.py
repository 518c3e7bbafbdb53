"""Link domains of groups, compared with those of every rank."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as some

from whatif.models.group_domains import group_domains


def numbers(size, stride, ranks, in_domain):
    return tuple(group_domains(*(np.array(float(count)) for count in (size, stride, ranks, in_domain))))


def counted(size, stride, ranks, in_domain):
    """The same by the domain of every rank."""
    groups = {}
    for rank in range(ranks):
        group = rank // (size * stride), rank % stride
        groups.setdefault(group, Counter())[rank // in_domain] += 1
    found = [(len(group), max(group.values()), min(group.values())) for group in groups.values()]
    beyond = [group for group in found if group[0] > 1] or found
    return min(beyond, key=lambda group: (group[2], -group[0], -group[1]))


@given(some.integers(1, 20), some.integers(1, 12), some.integers(1, 8), some.integers(1, 40))
@example(64, 1, 3, 72)
@example(3, 1, 8, 8)
@example(73, 1, 1, 72)
@example(64, 8, 8, 8)
def test_numbers_are_those_of_the_domains_of_all_ranks(size, stride, groups, in_domain):
    ranks = size * stride * groups
    assert numbers(size, stride, ranks, in_domain) == counted(size, stride, ranks, in_domain)


def test_counts_that_are_not_whole_have_no_numbers():
    assert np.isnan(numbers(2.5, 1, 10, 8)).all()
    assert np.isnan(numbers(2, 1, np.nan, 7)).all()
    assert np.isnan(numbers(2, 1, 2.0**26, 7)).all()


def test_one_group_of_any_number_of_ranks_is_counted():
    assert numbers(2.0**26, 1, 2.0**26, 64) == (2.0**20, 64, 64)
