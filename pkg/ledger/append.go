// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/audit"
)

// Append adds leaf to the ledger in dir, which is made if it does not exist, and returns its
// number. An entry that the ledger has already is not added again. leaf has 1 to 65,535
// bytes. Only one process writes at a time: others wait. If the checkpoint alone is missing, it is
// an error.
func Append(dir string, signer *audit.Signer, leaf []byte) (n int64, h Head, err error) {
	if len(leaf) == 0 || len(leaf) > math.MaxUint16 {
		return 0, h, stop(CodeWrite, fmt.Sprintf("an entry has 1 to %d bytes, not %d", math.MaxUint16, len(leaf)), "append the last checkpoint of a log", nil)
	}
	l, err := Open(dir, signer.Key())
	if err != nil {
		return 0, h, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return 0, h, stop(CodeWrite, "cannot lock the ledger", "name a directory that can be written", err)
	}
	defer unlock()
	if !isNew(dir) {
		if h, err = l.Head(); isCode(err, CodeKey) {
			return 0, h, stop(CodeKey, fmt.Sprintf("the ledger %q is signed by another key", dir), "sign with the ledger's own key; if it is lost, begin another ledger in a new directory", errors.Unwrap(err))
		} else if err != nil {
			return 0, h, err
		}
	}
	if n, err := l.find(h.Size, leaf); err == nil || !isCode(err, CodeMissing) {
		return n, h, err
	}
	return l.add(signer, h, leaf)
}

// add writes the entry, the tiles that it changes, and then the checkpoint.
func (l *Ledger) add(signer *audit.Signer, old Head, leaf []byte) (int64, Head, error) {
	grown := growing{l.hashes(old), map[int64]tlog.Hash{}}
	more, err := tlog.StoredHashes(old.Size, leaf, grown)
	if err != nil {
		return 0, old, stop(CodeBroken, "the tiles are not those that were signed", hintRestore, err)
	}
	for i, hash := range more {
		grown.added[tlog.StoredHashIndex(0, old.Size)+int64(i)] = hash
	}
	size := old.Size + 1
	root, err := tlog.TreeHash(size, grown)
	if err != nil {
		return 0, old, stop(CodeBroken, "the tiles are not those that were signed", hintRestore, err)
	}
	signed, err := signer.Sign(fmt.Sprintf("%s\n%d\n%s\n", l.key.Name(), size, root))
	if err == nil {
		err = l.writeBundle(old.Size, leaf, grown)
	}
	if err == nil {
		err = l.writeTiles(old.Size, size, grown)
	}
	if err == nil {
		err = replace(filepath.Join(l.dir, checkpointFile), signed)
	}
	switch {
	case isCode(err, CodeBroken):
		return 0, old, err
	case err != nil:
		return 0, old, stop(CodeWrite, "cannot write the ledger, which is as before", "free space, or name a directory that can be written", err)
	}
	return old.Size, Head{size, root, string(signed)}, nil
}

// writeBundle writes the entries of the last tile with leaf, which is number n. What is there
// must be what was signed.
func (l *Ledger) writeBundle(n int64, leaf []byte, hashes tlog.HashReader) error {
	var data []byte
	if n%full > 0 {
		leaves, err := l.bundle(bundleOf(n/full, n))
		if err != nil {
			return err
		}
		first := n - n%full
		var indexes []int64
		for i := range leaves {
			indexes = append(indexes, tlog.StoredHashIndex(0, first+int64(i)))
		}
		signed, err := hashes.ReadHashes(indexes)
		if err != nil {
			return stop(CodeBroken, fmt.Sprintf("the entries from %d on are not those that were signed", first), hintRestore, err)
		}
		for i, earlier := range leaves {
			if signed[i] != tlog.RecordHash(earlier) {
				return stop(CodeBroken, fmt.Sprintf("entry %d is not the one that was signed", first+int64(i)), hintRestore, nil)
			}
			data = appendEntry(data, earlier)
		}
	}
	return replace(filepath.Join(l.dir, pathOf(bundleOf(n/full, n+1))), appendEntry(data, leaf))
}

func appendEntry(data, leaf []byte) []byte {
	return append(binary.BigEndian.AppendUint16(data, uint16(len(leaf))), leaf...)
}

func (l *Ledger) writeTiles(old, size int64, hashes tlog.HashReader) error {
	for _, t := range tlog.NewTiles(height, old, size) {
		data, err := tlog.ReadTileData(t, hashes)
		if err == nil {
			err = replace(filepath.Join(l.dir, pathOf(t)), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// growing reads hashes that are not written yet, and those that are.
type growing struct {
	tlog.HashReader
	added map[int64]tlog.Hash
}

func (g growing) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var written []int64
	for _, at := range indexes {
		if _, ok := g.added[at]; !ok {
			written = append(written, at)
		}
	}
	var read []tlog.Hash
	if len(written) > 0 {
		var err error
		if read, err = g.HashReader.ReadHashes(written); err != nil {
			return nil, err
		}
	}
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		hash, ok := g.added[at]
		if !ok {
			hash, read = read[0], read[1:]
		}
		out[i] = hash
	}
	return out, nil
}

// replace writes a file in one step, and returns when it has reached the disk.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lock waits until no other process writes to the ledger.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
