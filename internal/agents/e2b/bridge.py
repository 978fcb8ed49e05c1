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
def end(conn):
    try:
        conn.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass # it was reset or closed
def handle(kind, number, data):
    conn, room = conns.get(number, (None, None))
    if kind == b"o":
        conn = socket.create_connection(("127.0.0.1", port), 5)
        conn.settimeout(None)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 10, 0))
        room = threading.Semaphore(4)
        conns[number] = conn, room
        threading.Thread(target=receive, args=(number, conn, room), daemon=True).start()
    elif conn is None:
        pass
    elif kind == b"a":
        room.release()
    elif kind == b"c":
        end(conn)
        room.release()
    else:
        conn.sendall(data)
read = sys.stdin.buffer.read
while len(head := read(5)) == 5:
    kind, number, size = struct.unpack(">cHH", head)
    data = read(size)
    try:
        handle(kind, number, data)
    except OSError:
        conn, room = conns.get(number, (None, None))
        if conn:
            end(conn)
        else:
            answer(number, b"")
