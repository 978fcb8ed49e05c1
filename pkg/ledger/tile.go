// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// height is that of tiles: each has 256 hashes, or entries, when it is full.
const (
	height = 8
	full   = 1 << height
)

// hashes reads hashes of h's tree from tiles, and checks them against its root.
func (l *Ledger) hashes(h Head) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: h.Size, Hash: h.Root}, tiles{l.dir})
}

// tiles implements tlog.TileReader.
type tiles struct{ dir string }

func (tiles) Height() int                     { return height }
func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (t tiles) ReadTiles(list []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range list {
		data, err := readFile(filepath.Join(t.dir, pathOf(tile)))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// checkTiles compares every tile of a ledger of this size with the hashes of its entries.
func (l *Ledger) checkTiles(size int64, hashes tlog.HashReader) error {
	for _, t := range tlog.NewTiles(height, 0, size) {
		want, err := tlog.ReadTileData(t, hashes)
		if err != nil {
			return err
		}
		if got, err := readFile(filepath.Join(l.dir, pathOf(t))); err != nil || !bytes.Equal(got, want) {
			return stop(CodeBroken, fmt.Sprintf("the ledger's file %s is not that of its entries", pathOf(t)), hintRestore, err)
		}
	}
	return nil
}

// pathOf is a tile's path: Go's has the height, that of C2SP has not, and calls entries so.
func pathOf(t tlog.Tile) string {
	return filepath.FromSlash(strings.Replace(strings.Replace(t.Path(), fmt.Sprintf("tile/%d/", t.H), "tile/", 1), "tile/data/", "tile/entries/", 1))
}

// bundleOf is the tile with the entries from n·256 on, of a ledger of this size.
func bundleOf(n, size int64) tlog.Tile {
	return tlog.Tile{H: height, L: -1, N: n, W: int(min(full, size-n*full))}
}

// entries calls each with every entry in order, until it returns an error.
func (l *Ledger) entries(size int64, each func(n int64, leaf []byte) error) error {
	for n := int64(0); n*full < size; n++ {
		leaves, err := l.bundle(bundleOf(n, size))
		if err != nil {
			return err
		}
		for i, leaf := range leaves {
			if err := each(n*full+int64(i), leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// bundle reads the entries of a tile.
func (l *Ledger) bundle(t tlog.Tile) ([][]byte, error) {
	data, err := readFile(filepath.Join(l.dir, pathOf(t)))
	var leaves [][]byte
	for err == nil && len(data) > 0 {
		var leaf []byte
		leaf, data, err = cutEntry(data)
		leaves = append(leaves, leaf)
	}
	if err == nil && len(leaves) != t.W {
		err = fmt.Errorf("%d entries instead of %d", len(leaves), t.W)
	}
	if err != nil {
		return nil, stop(CodeBroken, fmt.Sprintf("cannot read the ledger's file %s", pathOf(t)), hintRestore, err)
	}
	return leaves, nil
}

func cutEntry(data []byte) (leaf, rest []byte, err error) {
	if len(data) < 2 {
		return nil, nil, errors.New("cut off")
	}
	n := int(binary.BigEndian.Uint16(data))
	if data = data[2:]; len(data) < n {
		return nil, nil, errors.New("cut off")
	}
	return data[:n], data[n:], nil
}
