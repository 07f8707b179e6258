"""Views: tensor -> tensor, no parameters. What a method looks at instead of the whole case; one idea per file."""

from dicot.nets.views.blocks import Blocks, block_layout, cut_blocks, subblocks
from dicot.nets.views.distortions import Distortion

__all__ = ["Blocks", "Distortion", "block_layout", "cut_blocks", "subblocks"]
