import torch
from hypothesis import given
from hypothesis import strategies as st

from dicot.nets.views import block_layout, cut_blocks

LENGTHS = st.integers(4, 3000)
COUNTS = st.integers(2, 20)
OVERLAPS = st.floats(0, 0.95)


@given(LENGTHS, COUNTS, OVERLAPS)
def test_paper_blocks_are_inside_the_case_and_evenly_spaced(n_times, k, overlap):
    blocks = block_layout(n_times, k, overlap, "paper")
    assert blocks.length >= 2
    assert blocks.starts[0] == 0
    assert len(blocks) >= 1
    assert blocks.starts[-1] + blocks.length <= n_times
    assert len({b - a for a, b in zip(blocks.starts, blocks.starts[1:], strict=False)}) <= 1


@given(LENGTHS, COUNTS, OVERLAPS)
def test_exact_blocks_are_k_distinct_ones_that_reach_both_ends(n_times, k, overlap):
    blocks = block_layout(n_times, k, overlap, "exact")
    assert len(blocks) == min(k, n_times // 2)
    assert len(set(blocks.starts)) == len(blocks)
    assert blocks.starts[0] == 0
    if len(blocks) > 1:
        assert blocks.starts[-1] + blocks.length == n_times


@given(st.integers(4, 60), st.integers(2, 10), st.sampled_from(["paper", "exact"]))
def test_subblocks_are_slices_of_the_case(n_times, k, rounding):
    x = torch.arange(2 * 3 * n_times).reshape(2, 3, n_times)
    blocks = block_layout(n_times, k, 0.5, rounding)
    cut = cut_blocks(x, blocks)
    assert cut.shape == (2, len(blocks), 3, blocks.length)
    for j, start in enumerate(blocks.starts):
        assert torch.equal(cut[:, j], x[..., start : start + blocks.length])
