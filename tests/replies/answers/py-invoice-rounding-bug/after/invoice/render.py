"""Invoices as plain text, 60 columns wide."""
from .model import cents

WIDTH = 60


def money(value):
    return f"{cents(value):,.2f} €"


def row(left, right):
    return left[: WIDTH - len(right) - 1].ljust(WIDTH - len(right)) + right


def as_text(invoice):
    out = [f"Rechnung {invoice.number}", f"für {invoice.customer}", "=" * WIDTH]
    for line in invoice.lines:
        out.append(row(f"{line.quantity:g} × {line.text}", money(line.net)))
    out.append("-" * WIDTH)
    out.append(row("Netto", money(invoice.net())))
    for rate, tax in sorted(invoice.tax_groups().items()):
        out.append(row(f"USt. {rate:.0%}", money(tax)))
    out.append(row("Gesamt", money(invoice.total())))
    return "\n".join(out) + "\n"
