"""Send one invoice a second through the export, for an hour."""

import io
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))

from billing import export  # noqa: E402

for n in range(1, 3601):
    total = export([("invoice", 100 * n, 2100)], io.StringIO())
    print(f"invoice {n}: {total} cents", flush=True)
    time.sleep(1)
