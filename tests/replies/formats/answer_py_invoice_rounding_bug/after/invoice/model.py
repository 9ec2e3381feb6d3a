"""The data of an invoice."""
from dataclasses import dataclass, field
from decimal import Decimal, ROUND_HALF_UP

CENT = Decimal("0.01")


def dec(value):
    """Convert ints, floats and strings to Decimal without float noise."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def round_cents(value):
    return dec(value).quantize(CENT, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Line:
    text: str
    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal = Decimal("0.19")

    def __post_init__(self):
        # frozen dataclass, so we have to go through object.__setattr__
        object.__setattr__(self, "quantity", dec(self.quantity))
        object.__setattr__(self, "unit_price", dec(self.unit_price))
        object.__setattr__(self, "tax_rate", dec(self.tax_rate))

    @property
    def net(self):
        return self.quantity * self.unit_price


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list = field(default_factory=list)

    def add(self, text, quantity, unit_price, tax_rate=Decimal("0.19")):
        if quantity <= 0:
            raise ValueError(f"quantity must be positive: {quantity!r}")
        self.lines.append(Line(text, quantity, unit_price, tax_rate))
        return self

    def _net_by_rate(self):
        groups = {}
        for line in self.lines:
            groups[line.tax_rate] = groups.get(line.tax_rate, Decimal("0")) + line.net
        return groups

    def net(self):
        return sum((round_cents(net) for net in self._net_by_rate().values()), Decimal("0.00"))

    def tax_groups(self):
        return {rate: round_cents(net * rate) for rate, net in self._net_by_rate().items()}

    def tax(self):
        return sum(self.tax_groups().values(), Decimal("0.00"))

    def total(self):
        return self.net() + self.tax()
