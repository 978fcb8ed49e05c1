// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// goroot is a toolchain whose go command compiles quickly, and counts how often.
func goroot(t *testing.T, script string) (Root, string) {
	root := tree(t, map[string]string{"go/bin/go": "#!/bin/sh\n" + script, "go/VERSION": "go1.99", "go/src/runtime/x.go": "", "go/pkg/tool/compile": program})
	return search(t, root, "ROOT/go/bin"), root
}

const compiles = `[ "$*" = "build std" ] && [ "$(id -u)" = 0 ] && [ -z "$GOFLAGS" ] && mkdir "$GOCACHE/00" && echo x > "$GOCACHE/00/x-a" && chmod 600 "$GOCACHE/00/x-a" && ln -s /etc/passwd "$GOCACHE/link"
`

func TestGoCache(t *testing.T) {
	t.Setenv("GOFLAGS", "-x")
	r, root := goroot(t, compiles)
	cache := root + "/cache"
	must(t, os.Mkdir(cache, 0o755))
	notices := 0
	find := func() string {
		dir, err := r.GoCache(t.Context(), Search{}, cache, func(string) { notices++ })
		must(t, err)
		return dir
	}
	dir := find()
	info, err := os.Stat(filepath.Join(dir, "00/x-a"))
	must(t, err)
	if _, err := os.Lstat(filepath.Join(dir, "link")); err == nil || info.Mode() != 0o644 || !info.ModTime().Equal(lastUse) {
		t.Errorf("%v, mode %v, time %v; want no link, a readable file, and a time that needs no renewal", err, info.Mode(), info.ModTime())
	}
	if trim, err := os.Stat(filepath.Join(dir, "trim.txt")); err != nil || time.Since(trim.ModTime()) > time.Minute {
		t.Errorf("trim.txt: %v, %v; want one of this minute", trim, err)
	}
	if again := find(); again != dir || notices != 1 {
		t.Errorf("compiled %d times, %s and %s; want once", notices, dir, again)
	}
	must(t, os.WriteFile(root+"/go/VERSION", []byte("go1.100"), 0o644))
	if other := find(); other == dir || notices != 2 {
		t.Errorf("another version has %s, compiled %d times", other, notices)
	}
}

func TestGoCacheFails(t *testing.T) {
	r, root := goroot(t, "echo broken >&2; exit 1\n")
	cache := root + "/cache"
	must(t, os.Mkdir(cache, 0o755))
	if dir, err := r.GoCache(t.Context(), Search{}, cache, func(string) {}); dir != "" || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%q, %v; want what the go command said", dir, err)
	}
	if left, _ := os.ReadDir(filepath.Join(cache, goCacheName)); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	must(t, os.Chmod(root+"/go/pkg/tool", 0o777))
	if dir, err := r.GoCache(t.Context(), Search{}, cache, func(string) {}); dir != "" || err == nil || !strings.Contains(err.Error(), "every user can write") {
		t.Errorf("%q, %v; want a refusal of a toolchain that others can change", dir, err)
	}
}

// The caches that were used least recently go first.
func TestGoCachePrune(t *testing.T) {
	all := t.TempDir()
	for i, name := range []string{"a", "b", "c", "d", unfinished + "old"} {
		must(t, os.Mkdir(filepath.Join(all, name), 0o755))
		at := time.Now().Add(-time.Duration(10+i) * time.Hour)
		must(t, os.WriteFile(filepath.Join(all, name, "trim.txt"), nil, 0o644))
		must(t, os.Chtimes(filepath.Join(all, name, "trim.txt"), at, at))
	}
	pruneCaches(all)
	var left []string
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "a b" {
		t.Errorf("left %s; want the two that were used last", got)
	}
}
