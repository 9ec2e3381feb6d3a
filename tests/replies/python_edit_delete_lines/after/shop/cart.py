"""A cart."""
from dataclasses import dataclass


@dataclass
class Cart:
    net_total: int
    discount_rate: float = 0.0

    def total(self):
        if self.discount_rate > 0:
            return self.net_total + self.discount_rate
        return self.net_total

    def __repr__(self):
        return f"Cart({self.net_total!r})"
