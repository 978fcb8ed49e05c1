// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps one long-lived, append-only log of the audit logs of many runs. Its
// entries are the last checkpoints of sealed logs: a run cannot be left out, replaced or
// dated back later without a change that anyone who kept an earlier checkpoint sees.
//
// # Layout
//
// A ledger is a directory, or the same files on a web server, as C2SP tlog-tiles
// (https://c2sp.org/tlog-tiles) describes it:
//
//	checkpoint                 a signed note: origin, size and root of the tree
//	tile/L/N[.p/W]             hashes of the Merkle tree (RFC 6962), 256 in a tile
//	tile/entries/N[.p/W]       the entries: two bytes of length, big-endian, and the bytes
//
// The key is Ed25519, as golang.org/x/mod/sumdb/note writes it, and the origin is its name. The
// text of the checkpoint has three lines: the origin, the size in decimal and the root in
// base64. After an empty line, each signature has a line as in package audit. Base64 has one
// spelling only, as there. Witnesses add their cosignatures (https://c2sp.org/tlog-cosignature)
// to the file checkpoint; Append removes them with the checkpoint that they are of.
//
// A leaf of the tree is an entry: a checkpoint of an audit log with its signature and its line
// ends (see package audit), 1 to 65,535 bytes. N is the number of a tile, in groups of three
// digits: 1234067 is x001/x234/067. Tiles of a smaller ledger may remain (.p/W); nothing reads them.
//
// # What it promises
//
// Append holds a lock, writes entries and tiles, and then replaces the checkpoint, each file
// in one step: if it is interrupted, the ledger is as before. A proof (C2SP tlog-proof, as
// in package audit) shows without the ledger that an entry is in it. Since shows that a
// ledger contains an earlier one.
//
// Who has the key can fork the ledger, and show different ones to different people.
// Witnesses, or checkpoints kept elsewhere, show that.
package ledger
