# SPDX-License-Identifier: Apache-2.0
# A watched file is replaced by rename. Linux reports IN_ATTRIB (4), IN_DELETE_SELF (0x400) and IN_IGNORED (0x8000), gVisor no
# IN_ATTRIB.
import ctypes
import os
import struct
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
os.chdir(tempfile.mkdtemp())
for name in "watched", "other":
    open(name, "w").close()
fd = libc.inotify_init()
libc.inotify_add_watch(fd, b"watched", 0xFFF)
os.rename("other", "watched")
data, at = os.read(fd, 4096), 0
while at < len(data):
    _, mask, _, length = struct.unpack_from("iIII", data, at)
    print(hex(mask))
    at += 16 + length
