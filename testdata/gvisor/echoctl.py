# SPDX-License-Identifier: Apache-2.0
# A terminal with ECHOCTL shows a control character as two: Linux prints b'a^Ab\r\n', gVisor b'a\x01b\r\n'.
import os
import pty

ours, theirs = pty.openpty()
os.write(ours, b"a\x01b\n")
print(os.read(ours, 100))
