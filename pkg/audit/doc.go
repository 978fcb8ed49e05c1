// SPDX-License-Identifier: Apache-2.0

// Package audit appends to, verifies and proves from a log that cannot be changed
// unseen. It knows bytes only: what an entry means is its caller's affair.
//
// # Format fumehood.audit/v1
//
// A log is one file of JSON lines. Each line ends in one newline (U+000A), is at
// most MaxEntry + 1024 bytes long and holds one canonical JSON object; there are no
// blank lines and no other bytes. The lines are, in this order:
//
//	{"key":"K","origin":"O","schema":"fumehood.audit/v1"}      header
//	{"checkpoint":"N"}                                         for 0 entries
//	{"entry":{"body":B,"kind":"D","time":"T"},"n":0}           an entry, and
//	{"checkpoint":"N"}                                         its checkpoint; repeated
//	{"checkpoint":"N"}                                         the seal, and the end
//
// K is a verifier key as golang.org/x/mod/sumdb/note writes it (Ed25519). O is the
// origin: 1 to 200 characters out of A-Z a-z 0-9 and ._~:/@%-, as is the key's name.
// n counts from 0 without gaps. D is a lower-case letter followed by at most 63 of
// a-z 0-9 . and -. T is UTC as 2006-01-02T15:04:05.000Z. B is any JSON value.
//
// A leaf of the Merkle tree (RFC 6962, SHA-256) is the text of the "entry" member,
// from its opening to its closing brace. N is a signed note with exactly one
// signature, by K, whose text is a C2SP tlog-checkpoint with one or two extensions:
//
//	O
//	size of the tree, decimal
//	root hash, base64
//	bytes P H
//	sealed
//
// P is the number of bytes of the file before this checkpoint's line, H the base64
// SHA-256 of those bytes. The last text line stands in the seal only.
//
// # Canonical JSON
//
// Canonical JSON is RFC 8785 (JCS): no white space; members sorted by the UTF-16
// code units of their names; strings in valid UTF-8 with only \" \\ \b \f \n \r \t
// and \u00xx (lower case, other characters below U+0020) escaped; numbers as
// ECMAScript prints them. It is narrower in four things: a number without fraction
// and exponent lies within ±(2⁵³−1), member names do not repeat, nesting is at most
// 100 deep, and lone surrogates are invalid. Because control characters are always
// escaped, no entry can hold or forge a line's end.
//
// Append encodes Go values with encoding/json, which writes U+FFFD for what is not
// UTF-8. Who must keep such bytes exactly puts them in as []byte.
//
// # What it promises
//
// Append returns after its entry and a checkpoint over it were written in one write
// and reached the disk (fsync). So what was acknowledged is signed, and killing the
// process at any moment leaves a log whose signed part holds every acknowledged
// entry, followed by at most one torn, never acknowledged write. Verify tells the
// ends of a log apart: sealed (complete), unsealed (ends after a checkpoint) and torn
// (unsigned bytes after the last checkpoint). Every other departure from the format
// is a VerifyError that names the first line that is wrong.
//
// Without the private key no byte before the last checkpoint's end can be edited,
// removed, added, repeated or moved without Verify finding it. A log can only be cut
// short, which leaves it unsealed or torn, just as a crash does: the file alone
// cannot tell whether a hand or a crash ended it. Whoever holds a later checkpoint
// (the report carries the last one) can: give it as Trust.Checkpoint, and a log that
// does not hold it is VerifyError "truncated" or "forked".
//
// # Errors
//
// What keeps a log from being written is a proposal.StopError: audit.exists,
// audit.not-writable, audit.full, audit.locked, audit.origin, audit.key,
// audit.entry (not JSON, or too large), audit.replaced (the file is not what this
// process left), audit.sealed and audit.closed. Each kills its Log.
//
// # What it does not protect against
//
// Who holds the private key, or controls the process while it writes, can write
// anything. With an ephemeral key the log is only as good as the place where the
// public key and the checkpoint were kept; with Trust.Key empty Verify believes the
// header's key, so that a wholly new log is not told from the old. Nothing stops
// deletion of the file. Time stamps are the writer's word. Entries hold untrusted
// text, not made fit to be shown on a terminal.
//
// # Why
//
// Every checkpoint is signed, but Verify does not check every signature: at 50 µs
// each that alone would allow 20,000 entries a second. H binds all bytes before a
// checkpoint, earlier signatures included, so one valid signature vouches for
// everything before it. Verify compares the root and H of every checkpoint with what
// it computed itself, checks the signature of every 64th and of the last one, and
// when anything is wrong checks those in between to find the first wrong line. A
// checkpoint's own signature bytes are pinned by the next checkpoint's H, and those
// of the last are checked; so the result is the same as if all had been checked.
// A chain of H alone would suffice for that; the tree is for proofs of one entry.
package audit
