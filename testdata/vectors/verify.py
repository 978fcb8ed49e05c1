# SPDX-License-Identifier: Apache-2.0
"""Verify a log or a proof of the format fumehood.audit/v1, as the package comment of pkg/audit defines it.
    usage: verify.py LOG|PROOF KEY [CHECKPOINT]   exit code 0: sealed, or a valid proof; 1: anything else
           verify.py vectors.json                 one verdict for each row
It needs only Python's standard library, and checks every signature: about 150 entries a second."""
import base64, datetime, hashlib, json, os, re, sys
from decimal import Decimal

MAX_ENTRY, MAX_INT, N = 8 << 20, 2**53 - 1, "(0|[1-9][0-9]{0,17})"
NAME, KIND, TIME = "[A-Za-z0-9._~:/@%-]{1,200}", "[a-z][a-z0-9.-]{0,63}", "[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}[.][0-9]{3}"
sha256 = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
def need(condition, message, back=0):  # back: how many lines earlier the fault is
    if not condition:
        raise ValueError(message, back)
def decode64(text):  # the standard alphabet, with padding
    raw = base64.b64decode(text, validate=True)
    need(base64.b64encode(raw).decode() == text, "another spelling of base64")
    return raw

# Ed25519 (RFC 8032), in extended coordinates, without the cofactor
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D, ROOT = -121665 * pow(121666, P - 2, P) % P, pow(2, (P - 1) // 4, P)
def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    return (b - a) * (d - c) % P, (d + c) * (b + a) % P, (d - c) * (d + c) % P, (b - a) * (b + a) % P
def times(n, p):
    out = (0, 1, 1, 0)
    for bit in bin(n)[2:]:
        out = add(out, out)
        out = add(out, p) if bit == "1" else out
    return out
def point(raw):
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    roots = [x for x in (pow(xx, (P + 3) // 8, P) * r % P for r in (1, ROOT)) if (x * x - xx) % P == 0]
    need(roots, "not a point of the curve")
    x = roots[0] if roots[0] & 1 == raw[31] >> 7 else P - roots[0]
    return x, y, 1, x * y % P
def valid(public, text, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(r + public + text).digest(), "little") % L
    x, y, z, t = point(public)
    x, y, z, t = add(times(s, point(b"\x58" + b"\x66" * 31)), times(h, (P - x, y, z, P - t)))
    x, y = x * pow(z, P - 2, P) % P, y * pow(z, P - 2, P) % P
    return s < L and (y | (x & 1) << 255).to_bytes(32, "little") == r
def read_key(key):
    m = re.fullmatch(r"(%s)\+([0-9a-f]{8})\+(.+)" % NAME, key)
    raw = decode64(m[3]) if m else b""
    need(len(raw) == 33 and raw[0] == 1 and sha256(m[1].encode(), b"\n", raw)[:4].hex() == m[2], "malformed key")
    return m[1], bytes.fromhex(m[2]), raw[1:]
def number(text):  # as ECMAScript prints it
    if re.fullmatch("-?[0-9]+", text):
        need(abs(int(text)) <= MAX_INT, "integer too large")
        return str(int(text))
    value, fixed = float(text), 1e-6 <= abs(float(text)) < 1
    need(1e21 <= abs(value) < float("inf") or value % 1, "integer with a fraction or exponent")
    return format(Decimal(repr(value)), "f") if fixed else re.sub("e([+-])0", r"e\1", repr(value))
def canonical(value, depth=1):  # RFC 8785; a tuple is an object's members, and bytes are a number
    if isinstance(value, bytes):
        return number(value.decode())
    if not isinstance(value, (list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    need(depth <= 100, "nested too deep")
    if isinstance(value, list):
        return "[" + ",".join(canonical(v, depth + 1) for v in value) + "]"
    need(len(dict(value)) == len(value), "a name is repeated")
    return "{" + ",".join(canonical(k) + ":" + canonical(v, depth + 1) for k, v in sorted(value, key=lambda m: m[0].encode("utf-16-be"))) + "}"
def read_entry(line, n):
    m = re.fullmatch(r'\{"entry":(\{"body":.*,"kind":"%s","time":"(%s)Z"\}),"n":%s\}' % (KIND, TIME, N), line.decode())
    need(m and len(m[1].encode()) <= MAX_ENTRY, "not an entry")
    datetime.datetime.strptime(m[2], "%Y-%m-%dT%H:%M:%S.%f")
    leaf = json.loads(m[1], object_pairs_hook=tuple, parse_int=str.encode, parse_float=str.encode, parse_constant=int)
    need(len(leaf) == 3 and canonical(leaf) == m[1], "entry is not canonical")
    need(int(m[3]) == n, "another number belongs here")
    return sha256(b"\0", m[1].encode())
def read_note(note, key):  # returns origin, size, root, bytes before it, their hash, sealed
    m = re.fullmatch("((%s)\n%s\n(.*)\nbytes %s (.*)\n(sealed\n)?)\n\u2014 (.*) (.*)\n" % (NAME, N, N), note)
    raw = decode64(m[9]) if m else b""
    need(m and m[8] == key[0] and len(raw) == 68 and raw[:4] == key[1] and valid(key[2], m[1].encode(), raw[4:]), "not signed by this key")
    return m[2], int(m[3]), decode64(m[4]), int(m[5]), decode64(m[6]), bool(m[7])
def join(edges, whole):  # edges: (height, hash) of subtrees, the largest first; joins all, or those of one height
    while len(edges) > 1 and (whole or edges[-1][0] == edges[-2][0]):
        (height, right), (_, left) = edges.pop(), edges.pop()
        edges.append((height + 1, sha256(b"\1", left, right)))
    return edges[0][1] if edges else sha256()
def verify_log(data, trusted, known, where):
    *lines, tail = data.split(b"\n")
    edges, n, size, at, covered, digest, owed, sealed = [], 0, 0, 0, 0, hashlib.sha256(), False, False
    for i, line in enumerate(lines + [tail] * bool(tail), 1):
        where[0] = i
        need(not sealed and len(line) < MAX_ENTRY + 1024, "line follows the seal, or is too long")
        if i > len(lines):
            break
        if i == 1:
            m = re.fullmatch(r'\{"key":"(.*)","origin":"(%s)","schema":"fumehood.audit/v1"\}' % NAME, line.decode())
            need(m and m[1] == trusted, "not the header of a log of this key")
            key, origin = read_key(m[1]), m[2]
        elif i == 2 or owed or line.startswith(b'{"checkpoint":'):
            m = re.fullmatch(r'\{"checkpoint":"([^"]*)"\}', line.decode())
            note = m[1].replace("\\n", "\n") if m else ""
            got, want = read_note(note, key), (origin, n, join(edges[:], True), at, digest.digest(), not owed and i > 2)
            need(got[1] == n and (got[0] == origin or not n), "checkpoint of another place")
            need((owed or i == 2) and (got[5] == want[5] or got[3:5] != want[3:5]) or got == want, "checkpoint of another kind")
            need(got == want, "not what was signed", 1)
            size, covered, sealed, owed = n, at + len(line) + 1, got[5], False
            known = None if note == known else known
        else:
            edges.append((0, read_entry(line, n)))
            n, owed, _ = n + 1, True, join(edges, False)
        at += len(line) + 1
        digest.update(line + b"\n")
    where[0] = len(lines) + 1
    need(not known, "cut off before the known checkpoint, or another log")
    return {"verdict": "sealed" if sealed else "unsealed" if covered == len(data) and data else "torn",
            "entries": size, "unsigned_entries": n - size, "torn_bytes": len(data) - covered}

def read_proof(data):  # returns the leaf, its number, the hashes and the note
    need(m := re.fullmatch("c2sp.org/tlog-proof@v1\nextra (.*)\nindex %s\n((?:.+\n)*)\n(.*\n(?:.*\n)*)" % N, data.decode()), "malformed proof")
    return decode64(m[1]), int(m[2]), [decode64(line) for line in m[3].split("\n")[:-1]], m[4]
def climb(got, at, last, hashes):  # the root that a leaf's hash and its inclusion proof give: RFC 9162, 2.1.3.2
    for other in hashes:
        need(last > 0, "proof is too long")
        left = at & 1 or at == last
        got = sha256(b"\1", other, got) if left else sha256(b"\1", got, other)
        while left and at and not at & 1:
            at, last = at >> 1, last >> 1
        at, last = at >> 1, last >> 1
    return got if last == 0 else None
def verify_proof(data, trusted, known, where):
    (leaf, n, hashes, note), key = read_proof(data), read_key(trusted)
    _, size, root, _, _, sealed = read_note(note, key)
    need(n < size and known in (None, note), "for another checkpoint")
    need(climb(read_entry(b'{"entry":%s,"n":%d}' % (leaf, n), n), n, size - 1, hashes) == root, "not in the log that was signed")
    return {"verdict": "proved", "entries": size, "sealed": sealed}
def verify(path, key, checkpoint=None):
    data, where = open(path, "rb").read(), [0]
    check = verify_proof if data.startswith(b"c2sp.org/") else verify_log
    try:
        return check(data, key, checkpoint and checkpoint.rstrip("\n") + "\n", where)
    except (ValueError, RecursionError) as fault:
        back = fault.args[1] if type(fault) is ValueError and len(fault.args) == 2 else 0
        return {"verdict": "invalid", "line": where[0] - back, "about": str(fault.args[0])}

if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(found := verify(*sys.argv[1:])))
        sys.exit(found["verdict"] not in ("sealed", "proved"))
    for row in json.load(open(sys.argv[1], encoding="utf-8")):
        print(json.dumps(verify(os.path.join(os.path.dirname(sys.argv[1]), row["file"]), row["key"], row.get("checkpoint"))))
