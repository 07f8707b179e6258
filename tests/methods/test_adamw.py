import torch

from dicot.methods.infots import SelfOptimised, adamw


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


def test_the_function_is_pure_and_the_module_keeps_everything_in_buffers():
    value, gradient, zero = torch.ones(2), torch.tensor([3.0, 0.0]), torch.zeros(2)
    new, mean, square = adamw(value, gradient, zero, zero, 1, 0.1)
    assert value.tolist() == [1, 1] and zero.tolist() == [0, 0]
    torch.testing.assert_close(new, torch.tensor([1 - 0.001 - 0.1, 1 - 0.001]))  # the first step has the size lr
    torch.testing.assert_close(mean, 0.1 * gradient)
    torch.testing.assert_close(square, 0.001 * gradient**2)
    kept = SelfOptimised(torch.ones(2))
    assert set(kept.state_dict()) == {"value", "mean", "square"}
    assert not list(kept.parameters())
    leaf = kept.leaf()
    assert leaf.is_leaf and leaf.requires_grad and not kept.value.requires_grad
