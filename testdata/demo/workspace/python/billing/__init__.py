"""Invoices as the accountants want them: CSV, amounts in euros."""

import csv


def vat(net, rate):
    """The tax on net cents at rate hundredths of a percent, as billing.go has it."""
    return (net * rate + 5_000) // 10_000


def euros(cents):
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def export(lines, out):
    """Write (text, net, rate) lines to out and return the total in cents."""
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["text", "net", "vat"])
    total = 0
    for text, net, rate in lines:
        tax = vat(net, rate)
        rows.writerow([text, euros(net), euros(tax)])
        total += net + tax
    return total
