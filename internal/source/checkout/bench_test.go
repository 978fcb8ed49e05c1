// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkManyFiles measures what a run does with a repository of 50,000 files before its
// first command, step by step, and git's own clone of the same commit from the same server.
// The server has one pack, as real ones have.
func BenchmarkManyFiles(b *testing.B) {
	o := newOrigin(b, 40)
	var dirs []string
	for d := range 500 {
		var files []string
		for f := range 100 {
			files = append(files, fmt.Sprintf("100644 f%02d.txt", f), o.blob(strings.Repeat(fmt.Sprintf("file %d of %d\n", f, d), 20)))
		}
		dirs = append(dirs, fmt.Sprintf("40000 d%03d", d), o.tree(files...))
	}
	base := o.commit("many", o.tree(dirs...))
	head := o.commit("head", o.tree(append(dirs, "100644 new.txt", o.blob("new\n"))...), base)
	o.put("refs/heads/main", head+"\n")
	o.put("refs/heads/base", base+"\n")
	if out, err := exec.Command("git", "-C", o.dir, "repack", "-adq").CombinedOutput(); err != nil {
		b.Fatalf("git repack: %v: %s", err, out)
	}
	server := serve(b, o.root)
	step := func(s *Store, dir string) []func() error {
		return []func() error{
			func() error { return s.Fetch(b.Context(), head, base) },
			func() error { _, _, err := s.FetchHistory(b.Context(), head, base); return err },
			func() error { _, err := s.Write(b.Context(), head, dir); return err },
			func() error {
				return s.WriteRepository(b.Context(), dir, head, base, Branches{Head: "head", Base: "main"})
			},
		}
	}
	for i, name := range []string{"fetch", "history", "write", "repository"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s, dir := open(b, Source{URL: server.url}, Limits{}), filepath.Join(b.TempDir(), "ws")
				for j, f := range step(s, dir)[:i+1] {
					if j == i {
						b.StartTimer()
					}
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				os.RemoveAll(dir)
				b.StartTimer()
			}
		})
	}
	b.Run("git clone", func(b *testing.B) {
		for b.Loop() {
			dir := filepath.Join(b.TempDir(), "ws")
			if out, err := exec.Command("git", "clone", "-q", "--depth=2", "--branch=main", server.url, dir).CombinedOutput(); err != nil {
				b.Fatalf("git clone: %v: %s", err, out)
			}
		}
	})
}
