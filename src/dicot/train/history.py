"""What a run leaves behind beside its weights: plain data."""

from dataclasses import dataclass, field


@dataclass
class History:
    """Loss and learning rate of every step, and the seconds that were spent on them."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.loss)
