// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
)

// A sameIndex finds the programs of the root that have a given content, so that a
// copy of curl is known to be curl. It knows those in folders that are named for
// holding programs, and reads one only if its size is the same.
type sameIndex struct {
	roots root
	once  sync.Once
	sizes map[uint64][]sameFile
	count int
}

type sameFile struct{ inside, host string }

// What bounds the search.
const (
	sameFiles = 20_000
	sameNames = 8
	sameDepth = 4 // of folders below a bind
)

// holders are the names of folders that hold programs.
var holders = map[string]bool{"bin": true, "sbin": true, "libexec": true, "games": true, "git-core": true}

// without are the names of folders that hold none, and many other files.
var without = map[string]bool{"share": true, "include": true, "src": true, "doc": true, "locale": true}

func (x *sameIndex) names(size uint64, digest string) []string {
	x.once.Do(x.build)
	var names []string
	for _, f := range x.sizes[size] {
		if sum, err := fileDigest(f.host); err == nil && sum == digest && len(names) < sameNames {
			names = append(names, f.inside)
		}
	}
	slices.Sort(names)
	return names
}

func (x *sameIndex) build() {
	x.sizes = map[uint64][]sameFile{}
	for _, b := range x.roots.binds {
		x.walk(b.Source, b.Target, holders[path.Base(b.Target)], 0)
	}
}

// walk notes the programs of a folder, when it holds any, and of those below it.
func (x *sameIndex) walk(host, inside string, holds bool, depth int) {
	list, err := os.ReadDir(host)
	if err != nil {
		return
	}
	for _, d := range list {
		h, i := filepath.Join(host, d.Name()), path.Join(inside, d.Name())
		switch {
		case d.IsDir() && depth < sameDepth && !without[d.Name()]:
			x.walk(h, i, holds || holders[d.Name()], depth+1)
		case holds && d.Type().IsRegular() && x.count < sameFiles:
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o111 != 0 {
				size := uint64(info.Size())
				x.sizes[size] = append(x.sizes[size], sameFile{i, h})
				x.count++
			}
		}
	}
}
