import socket, struct, sys, threading
port, conns, lock = int(sys.argv[1]), {}, threading.Lock()
def answer(number, data):
    line = data.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    with lock:
        sys.stdout.buffer.write(b"%d:%d:%s\n" % (number, len(data), line))
        sys.stdout.buffer.flush()
def receive(number, conn, room):
    try:
        while room.acquire():
            data = conn.recv(12288)
            if not data:
                break
            answer(number, data)
    except OSError:
        pass
    conns.pop(number, None)
    conn.close()
    answer(number, b"")
def handle(kind, number, data):
    if kind == b"o":
        conn = socket.create_connection(("127.0.0.1", port), 5)
        conn.settimeout(None)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 10, 0))
        conns[number] = conn, threading.Semaphore(4)
        threading.Thread(target=receive, args=(number, *conns[number]), daemon=True).start()
    elif number not in conns:
        pass
    elif kind == b"a":
        conns[number][1].release()
    elif kind == b"c":
        conns[number][0].shutdown(socket.SHUT_RDWR)
        conns[number][1].release()
    else:
        conns[number][0].sendall(data)
read = sys.stdin.buffer.read
while len(head := read(5)) == 5:
    kind, number, size = struct.unpack(">cHH", head)
    data = read(size)
    try:
        handle(kind, number, data)
    except OSError:
        if number in conns:
            conns[number][0].shutdown(socket.SHUT_RDWR)
        else:
            answer(number, b"")
