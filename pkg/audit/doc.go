// SPDX-License-Identifier: Apache-2.0

// Package audit appends to, verifies and proves entries of a tamper-evident log. It
// handles only bytes: the meaning of an entry is up to the caller.
//
// # Format fumehood.audit/v1
//
// A log is one file of JSON lines. Each line ends in one newline (U+000A), is at
// most 8,389,632 bytes long with it (MaxEntry + 1024) and holds one canonical JSON object;
// there are no blank lines and no other bytes. The lines are, in this order:
//
//	{"key":"K","origin":"O","schema":"fumehood.audit/v1"}      header
//	{"checkpoint":"N"}                                         for 0 entries
//	{"entry":{"body":B,"kind":"D","time":"T"},"n":0}           an entry, and
//	{"checkpoint":"N"}                                         its checkpoint; repeated
//	{"checkpoint":"N"}                                         the seal, and the end
//
// O is the origin: 1 to 200 characters out of A-Z a-z 0-9 and ._~:/@%-. n counts from 0
// without gaps. D is a lower-case letter followed by at most 63 of a-z 0-9 . and -. T is
// UTC as 2006-01-02T15:04:05.000Z. B is any JSON value. The text of the "entry" member,
// from its opening to its closing brace, is at most 8,388,608 bytes long (MaxEntry).
// Base64 is everywhere that of RFC 4648, section 4: the standard alphabet, with padding,
// and with zeros in the bits that are not used. Decimal numbers have no leading zero.
//
// K is the verifier key, as golang.org/x/mod/sumdb/note writes it: NAME+HASH+DATA. NAME
// has the characters and length of an origin. DATA is the base64 of the byte 1 and the 32
// bytes of an Ed25519 public key (RFC 8032). HASH is eight lower-case hexadecimal digits:
// the first four bytes of the SHA-256 of NAME, a newline and those 33 bytes.
//
// N is a signed note: a text, an empty line and one signature line by K. Its newlines
// are written as \n in the line of the log; nothing else in it needs an escape, and
// nothing else is escaped. The text is a C2SP tlog-checkpoint with one or two extensions:
//
//	O
//	size of the tree, decimal
//	root hash, base64
//	bytes P H
//	sealed
//
//	— NAME SIGNATURE
//
// P is the number of bytes of the file before this checkpoint's line, H the base64
// SHA-256 of those bytes. Only the seal has the line "sealed". The signature line begins
// with an em dash (U+2014) and a space. SIGNATURE is the base64 of the four bytes of HASH
// and the 64 bytes of an Ed25519 signature of the text, including the newline that ends
// its last line and without the empty line. The signature is checked without cofactor.
//
// The leaves of the Merkle tree (RFC 6962, SHA-256) are the texts of the "entry" members.
// The hash of a leaf is the SHA-256 of the byte 0 and the leaf, that of a node of the byte
// 1 and the hashes of its two parts, and the root of no entries is the SHA-256 of nothing.
//
// # Which line is wrong
//
// The first wrong line of a log is the first line that is not one of the above, has
// another number than belongs there, or is a checkpoint that is not signed by K. It is the
// line before a checkpoint that is signed, is of this place (its size and origin, and
// whether it is a seal) and has another root, P or H: its signature shows that an earlier
// line was changed. Bytes after the seal are wrong themselves. A log that lacks a known
// checkpoint is wrong behind its last whole line.
//
// # Proofs
//
// A proof that an entry is in a log (Prove, CheckProof) is a C2SP tlog-proof, at most
// 16,779,264 bytes long, with these lines:
//
//	c2sp.org/tlog-proof@v1
//	extra L
//	index n
//	a hash, base64             any number of times
//	                           an empty line
//	N                          with its newlines
//
// L ("extra") is the base64 of the leaf itself, the text of the "entry" member, so that the
// proof needs no log. n is its number. The hashes are the inclusion proof of RFC 6962,
// section 2.1.1: from the leaf's sibling upwards. N is the last checkpoint of the log,
// signed by K, of a tree with more than n entries whose root the leaf and the hashes give.
//
// # Cosignatures
//
// A cosigned checkpoint (Cosign, Trust.Cosigned), at most 65,536 bytes long, is the seal's N with
// its newlines and, after its signature line, a line of C2SP tlog-cosignature, version 1:
//
//	— NAME SIGNATURE
//
// NAME is that of the cosigner's key, which has the form of K. SIGNATURE is the base64 of four
// bytes of a hash, eight bytes of a POSIX time in seconds, big-endian, and 64 bytes of an Ed25519
// signature. The hash is that of K, with the byte 4 in place of the byte 1. What is signed is:
//
//	cosignature/v1
//	time SECONDS
//	the text of N
//
// Other cosigners' lines may follow. A log agrees with it if the log contains N, by K, at its end.
//
// # Canonical JSON
//
// Canonical JSON is RFC 8785 (JCS): no white space; members sorted by the UTF-16 code
// units of their names; strings in valid UTF-8 with only \" \\ \b \f \n \r \t and
// \u00xx (lower case, other characters below U+0020) escaped; numbers as ECMAScript
// prints them. It is narrower in four ways: a number without fraction and exponent
// lies within ±(2⁵³−1), member names do not repeat, arrays and objects are at most 100
// deep (an entry's own object is the first), and lone surrogates are invalid. Because control characters are
// always escaped, no entry can contain or forge a line end.
//
// Append encodes Go values with encoding/json, which writes U+FFFD for invalid UTF-8.
// Callers that must keep such bytes exactly pass them as []byte.
//
// # What it promises
//
// Append returns after its entry and a checkpoint over it were written in one write
// and reached the disk (fsync), with everything before them. Write returns after the same
// write, and the fsync follows at once. So every acknowledged entry is signed, and killing
// the process at any moment leaves a log whose signed part holds every acknowledged entry,
// followed by at most one torn, never acknowledged write. If the host crashes, that is so
// for what Append acknowledged; entries of Write after that can be missing or torn. Verify distinguishes how a
// log ends: sealed (complete), unsealed (ends after a checkpoint) or torn (unsigned
// bytes after the last checkpoint). Every other departure from the format is a
// VerifyError that names the first wrong line.
//
// Without the private key no byte before the last checkpoint's end can be edited,
// removed, added, repeated or moved without Verify detecting it. A log can only be
// truncated, which leaves it unsealed or torn, just as a crash does: the file alone
// cannot show whether a person or a crash ended it. Anyone who holds a later checkpoint
// can find out (the report carries the last one): pass it as Trust.Checkpoint, and a
// log that does not contain it is VerifyError "truncated" or "forked".
//
// # Errors
//
// An error that prevents writing a log is a proposal.StopError: audit.exists,
// audit.not-writable, audit.full, audit.locked, audit.origin, audit.key, audit.entry
// (not JSON, or too large), audit.replaced (the file is not as this process left it),
// audit.broken (Open: it does not verify), audit.sealed and audit.closed. Each one
// makes its Log unusable.
//
// # What it does not protect against
//
// Anyone who holds the private key, or controls the process while it writes, can write
// anything. With an ephemeral key the log is only as trustworthy as the place where
// the public key and the checkpoint were kept. With an empty Trust.Key, Verify trusts
// the header's key, so a completely new log cannot be distinguished from the original.
// A cosignature shows that its signer had a log with this seal at that time by its clock: not that
// what the log says is so. Nothing prevents deletion of the file. The writer sets the time stamps; nothing
// verifies them. Entries hold untrusted text that is not sanitized for a terminal.
//
// # Why
//
// Every checkpoint is signed, but Verify does not check every signature: at 50 µs each
// that alone would limit it to 20,000 entries a second. H binds all bytes before a
// checkpoint, earlier signatures included, so one valid signature vouches for
// everything before it. Verify compares the root and H of every checkpoint with what
// it computed itself, and checks the signature of every 64th and of the last one. If
// anything is wrong it checks those in between to find the first wrong line. A
// checkpoint's own signature bytes are pinned by the next checkpoint's H, and those of
// the last are checked; so the result is the same as if all had been checked. A chain
// of H alone would suffice for that; the tree is for proofs of one entry.
package audit
