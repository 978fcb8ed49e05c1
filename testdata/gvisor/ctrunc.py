# SPDX-License-Identifier: Apache-2.0
# Data about an IPv6 packet does not fit into the buffer. Linux says so (MSG_CTRUNC, prints 8), gVisor does not (prints 0).
import socket

receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
receiver.bind(("::1", 0))
receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
receiver.sendto(b"x", receiver.getsockname())
print(receiver.recvmsg(10, 1)[2] & socket.MSG_CTRUNC)
