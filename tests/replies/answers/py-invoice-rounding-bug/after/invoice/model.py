"""The data of an invoice."""
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
DEFAULT_TAX_RATE = Decimal("0.19")


def to_decimal(value):
    """A Decimal with the digits that are shown for the value: 0.1 is exactly 0.1."""
    if isinstance(value, Decimal):
        return value
    return Decimal(str(value))


def cents(value):
    """The value rounded to cents, halves away from zero."""
    return value.quantize(CENT, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Line:
    text: str
    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal = DEFAULT_TAX_RATE

    def __post_init__(self):
        for name in ("quantity", "unit_price", "tax_rate"):
            object.__setattr__(self, name, to_decimal(getattr(self, name)))

    @property
    def net(self):
        """The exact net amount, not rounded."""
        return self.quantity * self.unit_price

    @property
    def tax(self):
        """The exact tax, not rounded."""
        return self.net * self.tax_rate


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list = field(default_factory=list)

    def add(self, text, quantity, unit_price, tax_rate=DEFAULT_TAX_RATE):
        if quantity <= 0:
            raise ValueError(f"quantity must be positive: {quantity!r}")
        self.lines.append(Line(text, quantity, unit_price, tax_rate))
        return self

    def _sums(self, attribute):
        groups = {}
        for line in self.lines:
            groups.setdefault(line.tax_rate, Decimal(0))
            groups[line.tax_rate] += getattr(line, attribute)
        return {rate: cents(amount) for rate, amount in groups.items()}

    def net_groups(self):
        """Net by tax rate, rounded once per group."""
        return self._sums("net")

    def tax_groups(self):
        """Tax by tax rate, rounded once per group."""
        return self._sums("tax")

    def net(self):
        return sum(self.net_groups().values(), Decimal("0.00"))

    def tax(self):
        return sum(self.tax_groups().values(), Decimal("0.00"))

    def total(self):
        return self.net() + self.tax()
