"""The device a run uses: which one, CUDA graphs, copies that hide behind the arithmetic, and its memory."""
