// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// largeCommit has 2,000 files of 4 KiB in 100 directories, packed as on a server.
func largeCommit(b *testing.B) (*origin, string) {
	o := newOrigin(b, 40)
	var folders []string
	content := make([]byte, 4096)
	for i := range 100 {
		var files []string
		for j := range 20 {
			for k := range content {
				content[k] = "abcdefghijklmnop qrstuvwxyz\n"[(k*k*(i+3)+j*k+i)%28]
			}
			files = append(files, fmt.Sprintf("100644 file%02d.go", j), o.blob(fmt.Sprint(i, j)+string(content)))
		}
		folders = append(folders, fmt.Sprintf("40000 folder%03d", i), o.tree(files...))
	}
	head := o.commit("large", o.tree(folders...))
	o.put("refs/heads/main", head+"\n")
	if out, err := exec.Command("git", "-C", o.dir, "repack", "-adq").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return o, head
}

func BenchmarkCheckout(b *testing.B) {
	o, head := largeCommit(b)
	server := serve(b, o.root)
	dir := b.TempDir()
	b.Run("fumehood", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s, err := Open(Source{URL: server.url, Dir: dir}, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Fetch(b.Context(), head); err != nil {
				b.Fatal(err)
			}
			work := filepath.Join(dir, fmt.Sprint("f", i))
			if _, err := s.Write(b.Context(), head, work); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			s.Close()
			os.RemoveAll(work)
			b.StartTimer()
		}
	})
	b.Run("git clone --depth 1", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			work := filepath.Join(dir, fmt.Sprint("g", i))
			c := exec.Command("git", "clone", "-q", "--depth=1", "-b", "main", server.url, work)
			c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := c.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StopTimer()
			os.RemoveAll(work)
			b.StartTimer()
		}
	})
}

// BenchmarkWrite measures the part after the fetch.
func BenchmarkWrite(b *testing.B) {
	o, head := largeCommit(b)
	server := serve(b, o.root)
	s := open(b, Source{URL: server.url}, Limits{})
	if err := s.Fetch(b.Context(), head); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		work := filepath.Join(dir, fmt.Sprint(i))
		if _, err := s.Write(b.Context(), head, work); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		os.RemoveAll(work)
		b.StartTimer()
	}
}
