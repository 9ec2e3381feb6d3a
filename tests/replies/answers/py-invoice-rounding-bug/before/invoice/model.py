"""The data of an invoice."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Line:
    text: str
    quantity: float
    unit_price: float
    tax_rate: float = 0.19

    @property
    def net(self):
        return round(self.quantity * self.unit_price, 2)

    @property
    def tax(self):
        return round(self.net * self.tax_rate, 2)


@dataclass
class Invoice:
    number: str
    customer: str
    lines: list = field(default_factory=list)

    def add(self, text, quantity, unit_price, tax_rate=0.19):
        if quantity <= 0:
            raise ValueError(f"quantity must be positive: {quantity!r}")
        self.lines.append(Line(text, quantity, unit_price, tax_rate))
        return self

    def net(self):
        return sum(line.net for line in self.lines)

    def tax_groups(self):
        groups = {}
        for line in self.lines:
            groups.setdefault(line.tax_rate, 0)
            groups[line.tax_rate] += line.tax
        return groups

    def tax(self):
        return sum(self.tax_groups().values())

    def total(self):
        return round(self.net() + self.tax(), 2)
