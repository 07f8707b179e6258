import torch

from dicot.methods.infots import SelfOptimised


def test_equals_torchs_optimiser():
    torch.manual_seed(0)
    start = torch.randn(5, 3, dtype=torch.float64)
    theirs = torch.nn.Parameter(start.clone())
    optimiser = torch.optim.AdamW([theirs], lr=0.01)
    ours = SelfOptimised(start.clone())
    for number in range(1, 30):
        gradient = torch.randn(5, 3, dtype=torch.float64) * 10 ** (number % 4 - 2)
        theirs.grad = gradient.clone()
        optimiser.step()
        ours.step(gradient, number, 0.01)
        torch.testing.assert_close(ours.value, theirs.detach(), rtol=1e-12, atol=1e-14)
    state = optimiser.state[theirs]
    torch.testing.assert_close(ours.mean, state["exp_avg"], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ours.square, state["exp_avg_sq"], rtol=1e-12, atol=1e-14)
