import torch

from dicot.methods.averaging import AveragedEncoder
from dicot.nets.encoders import FCN


def test_equal_weight_average_with_the_live_statistics():
    torch.manual_seed(0)
    live = FCN(1, dim=4)
    average = AveragedEncoder(live)
    iterates = []
    for _ in range(3):
        with torch.no_grad():
            for parameter in live.parameters():
                parameter += torch.randn_like(parameter)
            live.train()(torch.randn(4, 1, 12))
        average.update(live)
        iterates.append([p.detach().clone() for p in live.parameters()])
    for kept, *values in zip(average.encoder.parameters(), *iterates, strict=True):
        torch.testing.assert_close(kept, torch.stack(values).mean(0), rtol=1e-5, atol=1e-6)
        assert not kept.requires_grad
    for kept, buffer in zip(average.encoder.buffers(), live.buffers(), strict=True):
        assert torch.equal(kept, buffer)
