// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzWriter adds entries with names from the fuzzer and everything else from seed. What
// gVisor reads back is what was added, or the first entry that cannot be in an image is
// an error.
func FuzzWriter(f *testing.F) {
	f.Add("a\na/b\nc", uint64(1))
	f.Add(".\n-x\n..x\n"+strings.Repeat("n", 255)+"\nd/e/f/g\nd/e", uint64(2))
	f.Add(strings.Repeat("dir/\xff\ndir/"+strings.Repeat("y", 200)+"\n", 20), uint64(3))
	f.Add("/abs\n../out\na//b", uint64(4))
	f.Fuzz(func(t *testing.T, names string, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		path := filepath.Join(t.TempDir(), "image")
		w, err := Create(path, Options{MaxFiles: 2000, MaxBytes: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var added []file
		for name := range strings.SplitSeq(names, "\n") {
			e := randomFile(random, name, added)
			if w.Add(e.Entry, strings.NewReader(e.content)) != nil {
				break
			}
			added = append(added, e)
		}
		failed := w.err
		if _, _, err := w.Close(); err != failed {
			t.Fatalf("Close: %v after %v", err, failed)
		}
		if failed != nil {
			return
		}
		got, numbers, _ := readBack(t, path)
		for _, e := range added {
			if e.Hard == "" {
				equal(t, got, e)
			} else if numbers[e.Path] != numbers[e.Hard] {
				t.Errorf("%q is not %q", e.Path, e.Hard)
			}
		}
	})
}

func randomFile(r *rand.Rand, name string, before []file) file {
	e := file{Entry: Entry{Path: name, Mode: fs.FileMode(r.UintN(0o1000)), UID: r.Uint32(), GID: r.Uint32(), ModTime: time.Unix(r.Int64N(1<<40)-1<<39, r.Int64N(1e9))}}
	switch r.UintN(6) {
	case 0:
		e.Mode |= fs.ModeDir | fs.ModeSticky*fs.FileMode(r.UintN(2))
	case 1:
		e.Mode |= fs.ModeSymlink
		e.Link = strings.Repeat("t", 1+r.IntN(maxLink))
	case 2:
		if len(before) > 0 {
			e.Hard = before[r.IntN(len(before))].Path
		}
	default:
		e.content = strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(3*blockSize))
		e.Size = int64(len(e.content))
	}
	return e
}
