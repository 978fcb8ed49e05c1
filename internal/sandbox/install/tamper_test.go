// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

const (
	runsc    = "fumehood-runsc"
	guest    = "fumehood-init"
	sentry   = "gvisor-bin/gvisor_sentry"
	manifest = "fumehood-runsc.json"
)

// Every way in which an installation can differ from what was built.
var tampered = []struct {
	name string
	with func(t *testing.T, dir string)
	code string
	part string
}{
	{"nothing", func(*testing.T, string) {}, "", ""},
	{"one byte of runsc", flip(runsc), install.CodeDigest, `"fumehood-runsc" does not have the digest`},
	{"one byte of a sentry of its own", func(t *testing.T, dir string) {
		rewrite(t, dir, sentry, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	}, install.CodeDigest, `gvisor_sentry" does not have the digest`},
	{"one byte of init", flip(guest), install.CodeDigest, `"fumehood-init" does not have the digest`},
	{"runsc cut short", func(t *testing.T, dir string) {
		rewrite(t, dir, runsc, func(b []byte) []byte { return b[:len(b)-1] })
	}, install.CodeDigest, "its manifest says"},
	{"no sentry", remove(sentry), install.CodeDigest, "it is incomplete"},
	{"no sidecars", remove("gvisor-bin"), install.CodeDigest, "it is incomplete"},
	{"no manifest", remove(manifest), install.CodeDigest, "it is incomplete"},
	{"a sidecar that nobody built", func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, "gvisor-bin", "runsc-metric-server"), []byte("#!/bin/sh\n"), 0o755)
	}, install.CodeDigest, `"gvisor-bin/runsc-metric-server" is not in its manifest`},
	{"another program with its own digest", func(t *testing.T, dir string) {
		replaceWith(t, dir, "/proc/self/exe")
	}, install.CodeVersion, "not github.com/fumehood/fumehood/cmd/fumehood-runsc"},
	{"a script with its own digest", func(t *testing.T, dir string) {
		script := filepath.Join(dir, "script")
		write(t, script, []byte("#!/bin/sh\n"), 0o755)
		replaceWith(t, dir, script)
	}, install.CodeVersion, "cannot read what it was built from"},
	{"a manifest of another gVisor", edit(install.GVisorVersion, "v0.0.0-20200101000000-000000000000"),
		install.CodeVersion, "pinned is " + install.GVisorVersion},
	{"a manifest of another platform", edit(`"linux/`, `"plan9/`), install.CodeVersion, "it is for"},
	{"a manifest with a field more", edit(`"schema"`, `"trusted": true, "schema"`), install.CodeDigest, "unknown field"},
	{"a manifest of another kind", edit("fumehood.runsc/v1", "fumehood.runsc/v2"), install.CodeDigest, "unsupported manifest"},
	{"a manifest that leaves init out", edit(`"name": "fumehood-init"`, `"name": "fumehood-runsc"`), install.CodeDigest, "its manifest names"},
	{"a manifest that leads out", edit(`"name": "fumehood-init"`, `"name": "../fumehood-init"`), install.CodeDigest, "its manifest names"},
	{"a manifest that is none", func(t *testing.T, dir string) {
		rewrite(t, dir, manifest, func([]byte) []byte { return []byte("{") })
	}, install.CodeDigest, "invalid manifest"},
	{"a manifest with something after it", func(t *testing.T, dir string) {
		rewrite(t, dir, manifest, func(b []byte) []byte { return append(b, "{}"...) })
	}, install.CodeDigest, "data after the JSON value"},
	{"a manifest without end", func(t *testing.T, dir string) {
		rewrite(t, dir, manifest, func([]byte) []byte { return make([]byte, 1<<20) })
	}, install.CodeDigest, "1048576 bytes"},
	{"runsc writable by others", chmod(runsc, 0o757), install.CodePermissions, "mode 0757"},
	{"init writable by its group", chmod(guest, 0o575), install.CodePermissions, "mode 0575"},
	{"a sentry that cannot be run", chmod(sentry, 0o444), install.CodePermissions, "is not executable"},
	{"manifest writable by others", chmod(manifest, 0o666), install.CodePermissions, "mode 0666"},
	{"folder writable by others", chmod(".", 0o777), install.CodePermissions, "mode 0777"},
	{"sidecars writable by others", chmod("gvisor-bin", 0o777), install.CodePermissions, "mode 0777"},
	{"runsc of another user", chown(runsc), install.CodePermissions, "belongs to user 12345"},
	{"folder of another user", chown("."), install.CodePermissions, "belongs to user 12345"},
	{"folder that only we may enter", chmod(".", 0o700), install.CodePermissions, "cannot enter"},
	{"a folder above that only we may enter", chmod("..", 0o700), install.CodePermissions, "cannot enter"},
	{"a link in runsc's place", link(runsc), install.CodePermissions, "is a symbolic link"},
	{"a link in the sentry's place", link(sentry), install.CodePermissions, "is a symbolic link"},
	{"a link in the sidecars' place", link("gvisor-bin"), install.CodePermissions, "is not a directory"},
}

func TestTampered(t *testing.T) {
	lanetest.SkipShort(t)
	for _, c := range sample.EveryNth(t, tampered, 1, 4) {
		t.Run(c.name, func(t *testing.T) {
			dir := clone(t)
			c.with(t, dir)
			_, err := install.Find(t.Context(), install.Options{Path: filepath.Join(dir, runsc), Build: true})
			if c.code == "" {
				if err != nil {
					t.Fatalf("an untouched copy is refused: %v", err)
				}
				return
			}
			wantStop(t, err, c.code, c.part)
		})
	}
}

func TestUnchanged(t *testing.T) {
	lanetest.SkipShort(t)
	for name, with := range map[string]func(t *testing.T, dir string){
		"written in place": func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, guest), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte{1}, 4096); err != nil {
				t.Fatal(err)
			}
		},
		"replaced": flip(runsc),
		"removed":  remove(guest),
	} {
		t.Run(name, func(t *testing.T) {
			dir := clone(t)
			r, err := install.Find(t.Context(), install.Options{Path: filepath.Join(dir, runsc)})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.CheckUnchanged(); err != nil {
				t.Fatalf("before: %v", err)
			}
			with(t, dir)
			wantStop(t, r.CheckUnchanged(), install.CodeDigest, "")
		})
	}
	wantStop(t, install.Runsc{Path: "/usr/bin/runsc"}.CheckUnchanged(), install.CodeDigest, "never verified")
}

// A process that has computed a file's digest notices what changes it afterwards.
func TestTamperedLater(t *testing.T) { tamperLater(t, "", func() {}) }

// So does one that another has left the digests to.
func TestTamperedAfterOthers(t *testing.T) {
	lanetest.SkipShort(t)
	known := filepath.Join(t.TempDir(), "known")
	tamperLater(t, known, install.Forget)
	if kept, err := os.ReadDir(known); len(kept) == 0 || err != nil {
		t.Errorf("no file is remembered, %v", err)
	}
}

func tamperLater(t *testing.T, remember string, again func()) {
	lanetest.SkipShort(t)
	t.Helper()
	dir := clone(t)
	time.Sleep(1100 * time.Millisecond) // digests of files that were just written are not kept
	o := install.Options{Path: filepath.Join(dir, runsc), Remember: remember}
	for range 2 {
		if _, err := install.Find(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		again()
	}
	before, err := os.Stat(filepath.Join(dir, guest))
	if err != nil {
		t.Fatal(err)
	}
	flip(guest)(t, dir)
	if err := os.Chtimes(filepath.Join(dir, guest), before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	_, err = install.Find(t.Context(), o)
	wantStop(t, err, install.CodeDigest, `"fumehood-init" does not have the digest`)
}

// clone copies the installation under test; the sentry stays a hard link.
func clone(t *testing.T) string {
	t.Helper()
	to := filepath.Join(openTempDir(t), "copy")
	if err := copyInto(t, filepath.Dir(installtest.Runsc(t).Path), to); err != nil {
		t.Fatal(err)
	}
	return to
}

func copyInto(t *testing.T, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(from, path)
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case name == sentry:
			return os.Link(filepath.Join(to, runsc), filepath.Join(to, name))
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		testprogram.WriteExecutable(t, filepath.Join(to, name), text)
		return nil
	})
}

// openTempDir returns a temporary directory that every user may traverse, unlike
// t.TempDir.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rewrite replaces name with a new file, so that a hard link keeps the old one.
func rewrite(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, change(text), 0o755)
}

func write(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, text, mode); err != nil {
		t.Fatal(err)
	}
}

func flip(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		rewrite(t, dir, name, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func edit(old, new string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		rewrite(t, dir, manifest, func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Fatalf("the manifest has no %q:\n%s", old, b)
			}
			return bytes.Replace(b, []byte(old), []byte(new), 1)
		})
	}
}

func chmod(name string, mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func chown(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.Chown(filepath.Join(dir, name), 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
}

// link moves name away and replaces it with a symbolic link to the same file.
func link(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		away := filepath.Join(t.TempDir(), "away")
		if err := os.Rename(filepath.Join(dir, name), away); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// replaceWith replaces runsc and the sentry with another program and fixes the
// manifest, as a forger with write access would.
func replaceWith(t *testing.T, dir, program string) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, runsc))
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{runsc, sentry} {
		rewrite(t, dir, name, func([]byte) []byte { return after })
	}
	rewrite(t, dir, manifest, func(b []byte) []byte {
		b = bytes.ReplaceAll(b, sum(before), sum(after))
		return bytes.ReplaceAll(b, fmt.Appendf(nil, `"size": %d`, len(before)), fmt.Appendf(nil, `"size": %d`, len(after)))
	})
}

func sum(text []byte) []byte {
	digest := sha256.Sum256(text)
	return []byte(hex.EncodeToString(digest[:]))
}
