// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A sameIndex finds the programs of the root that have a given content, so that a
// copy of curl is known to be curl. Programs are looked for in the binds' folders
// that hold any, by size first: a file is read only if its size is the same.
type sameIndex struct {
	roots root
	once  sync.Once
	sizes map[uint64][]sameFile
}

type sameFile struct{ inside, host string }

// What bounds the search.
const (
	sameFiles  = 50_000
	sameWithin = time.Second
	sameNames  = 8
)

// without names folders that hold no programs and many files.
var without = map[string]bool{
	"share": true, "include": true, "doc": true, "src": true, "locale": true, "man": true, "python3": true, "dist-packages": true,
	"site-packages": true, "modules": true, "firmware": true, "fonts": true, "testdata": true, "test": true, "pkg/mod": true,
}

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
	end, count := time.Now().Add(sameWithin), 0
	for _, b := range x.roots.binds {
		_ = filepath.WalkDir(b.Source, func(host string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fs.SkipDir
			case count >= sameFiles || time.Now().After(end):
				return fs.SkipAll
			case d.IsDir() && without[d.Name()]:
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			info, err := d.Info()
			if err != nil || info.Mode().Perm()&0o111 == 0 {
				return nil
			}
			count++
			rel, err := filepath.Rel(b.Source, host)
			if err == nil {
				size := uint64(info.Size())
				x.sizes[size] = append(x.sizes[size], sameFile{filepath.Join(b.Target, rel), host})
			}
			return nil
		})
	}
}
