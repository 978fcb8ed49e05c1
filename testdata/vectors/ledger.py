# SPDX-License-Identifier: Apache-2.0
"""Verify a ledger, or a proof that a run is in one, as the package comment of pkg/ledger defines them.
    usage: ledger.py DIRECTORY KEY [--since CHECKPOINT] [--log LOG]   the whole ledger: every entry and every tile
           ledger.py PROOF KEY --log LOG                              a proof, without the ledger
           ledger.py ledgers.json                                     one verdict for each row
Exit code 0: all of it is right; 1: anything else. --since is a file with an earlier checkpoint, which the ledger must
contain. --log is the log of a run, which must be an entry. It needs only Python's standard library, and verify.py."""
import argparse, json, os, re, sys
from verify import N, climb, decode64, need, read_key, read_proof, sha256, valid, verify

FULL = 256  # the entries, or hashes, in a full tile
FAULTS = ValueError, OSError, KeyError, TypeError, RecursionError

def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()

def read_checkpoint(note, trusted):  # returns the size of the tree and its root
    name, key_hash, public = read_key(trusted)
    m = re.fullmatch("((.*)\n%s\n(.*)\n)\n((?:\u2014 [^\\s+]+ .*\n)+)" % N, note.decode())
    need(m and m[2] == name, "not a checkpoint of this ledger")
    signatures = [line.split(" ")[1:] for line in m[5].split("\n")[:-1]]  # witnesses sign it, too
    signatures = [(signer, decode64(text)) for signer, text in signatures]
    ours = [raw[4:] for signer, raw in signatures if signer == name and raw[:4] == key_hash]
    need(ours and len(ours[0]) == 64 and valid(public, m[1].encode(), ours[0]), "not signed by this key")
    return int(m[3]), decode64(m[4])

def path_of(level, n, width):  # C2SP tlog-tiles: tile 1234067 of level 0 is tile/0/x001/x234/067
    name = "%03d" % (n % 1000)
    while n >= 1000:
        n //= 1000
        name = "x%03d/%s" % (n % 1000, name)
    return "tile/%s/%s" % (level, name) + (".p/%d" % width if width < FULL else "")

def read_entries(folder, size):
    for n in range(0, size, FULL):
        width = min(FULL, size - n)
        data = read(folder, path_of("entries", n // FULL, width))
        for _ in range(width):
            end = 2 + int.from_bytes(data[:2], "big")
            need(end <= len(data), "an entry is cut off")
            yield data[2:end]
            data = data[end:]
        need(not data, "bytes follow the entries")

def root(hashes):  # RFC 6962, 2.1
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1", root(hashes[:half]), root(hashes[half:]))

def check_tiles(folder, hashes, level=0):  # hashes: those of one level, from the left
    groups = [hashes[n:n + FULL] for n in range(0, len(hashes), FULL)]
    for n, group in enumerate(groups):
        need(read(folder, path_of(level, n, len(group))) == b"".join(group), "a tile is not that of the entries")
    if groups:
        check_tiles(folder, [root(group) for group in groups if len(group) == FULL], level + 1)

def last_checkpoint(log):  # the ledger vouches for the key in the log's header
    lines = read(log).split(b"\n")
    need(verify(log, json.loads(lines[0])["key"])["verdict"] == "sealed", "the log of the run is not sealed")
    return json.loads(lines[-2])["checkpoint"].encode()

def verify_ledger(folder, key, since=None, log=None):
    size, signed = read_checkpoint(read(folder, "checkpoint"), key)
    entries = list(read_entries(folder, size))
    hashes = [sha256(b"\0", entry) for entry in entries]
    need(root(hashes) == signed, "the entries are not those that were signed")
    check_tiles(folder, hashes)
    if since:
        old_size, old = read_checkpoint(read(since), key)
        need(old_size <= size and root(hashes[:old_size]) == old, "it does not contain the earlier ledger")
    run = last_checkpoint(log) if log else None
    need(not log or run in entries, "the run is not in it")
    return {"verdict": "complete", "entries": size} | ({"entry": entries.index(run)} if log else {})

def verify_proof(proof, key, log):
    entry, n, hashes, note = read_proof(read(proof))
    size, signed = read_checkpoint(note.encode(), key)
    need(n < size and climb(sha256(b"\0", entry), n, size - 1, hashes) == signed, "not in the ledger that was signed")
    need(entry == last_checkpoint(log), "the proof is of another run")
    return {"verdict": "proved", "entries": size, "entry": n}

def check(path, key, since=None, log=None):
    try:
        return verify_ledger(path, key, since, log) if os.path.isdir(path) else verify_proof(path, key, log)
    except FAULTS as fault:
        return {"verdict": "invalid", "about": str(fault.args[0] if type(fault) is ValueError else fault)}

if __name__ == "__main__":
    if len(sys.argv) > 2:
        p = argparse.ArgumentParser()
        [p.add_argument(name) for name in ("path", "key", "--since", "--log")]
        print(json.dumps(found := check(**vars(p.parse_args()))))
        sys.exit(found["verdict"] == "invalid")
    base = os.path.dirname(sys.argv[1])
    for row in json.loads(read(sys.argv[1])):
        files = {name: os.path.join(base, row[name]) for name in ("path", "since", "log") if name in row}
        print(json.dumps(check(key=row["key"], **files)))
