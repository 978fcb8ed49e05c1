// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// All cases in which the program differs from the one in release.env, or in which
// it cannot be stored safely. Nothing is started, and the code identifies the case.
var refusedInstalls = []struct {
	name string
	with func(t *testing.T, i *installer)
	env  []string
	code string
	part string
}{
	{"one byte of the download", func(t *testing.T, i *installer) {
		i.served = slices.Clone(i.archive)
		i.served[len(i.served)/2] ^= 1
	}, nil, "install.digest", "from http://127.0.0.1:"},
	{"one byte of the installed program", func(t *testing.T, i *installer) {
		i.fill(t)
		i.append(t, "fumehood")
	}, nil, "install.digest", "/fumehood has SHA-256"},
	{"one byte of the installed runsc", func(t *testing.T, i *installer) {
		i.fill(t)
		i.append(t, "fumehood-runsc")
	}, nil, "install.digest", "/fumehood-runsc has SHA-256"},
	{"no installed program", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Remove(i.installed("fumehood")))
	}, nil, "install.digest", "cannot read"},
	{"an installed program that others can write", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chmod(i.installed("fumehood"), 0o757))
	}, nil, "install.folder", "writable by other users (owner, mode and kind: 0 757"},
	{"an installed sentry that its group can write", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chmod(i.installed("gvisor-bin"), 0o775))
	}, nil, "install.folder", "writable by other users (owner, mode and kind: 0 775"},
	{"an installed program of another user", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Chown(i.installed("fumehood-init"), 12345, 12345))
	}, nil, "install.folder", "does not belong to user 0"},
	{"a link among the installed programs", func(t *testing.T, i *installer) {
		i.fill(t)
		i.swap(t, i.installed("fumehood-init"), func(path string) error { return os.Symlink("/usr/bin/true", path) })
	}, nil, "install.folder", "is a symbolic link"},
	{"a link in the installation's place", func(t *testing.T, i *installer) {
		i.fill(t)
		i.must(t, os.Rename(i.installed(""), i.path("away")))
		i.must(t, os.Symlink(i.path("away"), i.installed("")))
	}, nil, "install.folder", "is a symbolic link"},
	{"a folder above that others can write", func(t *testing.T, i *installer) {
		i.must(t, os.Chmod(filepath.Dir(i.place), 0o777))
	}, nil, "install.folder", "writable by other users"},
	{"a folder above that others can write, though not delete in", func(t *testing.T, i *installer) {
		i.must(t, os.Chmod(filepath.Dir(i.place), 0o777|os.ModeSticky))
	}, nil, "install.folder", "0 1777"},
	{"a folder above of another user", func(t *testing.T, i *installer) {
		i.must(t, os.Chown(filepath.Dir(i.place), 65534, 65534))
	}, nil, "install.folder", "does not belong to user 0"},
	{"a folder above that is a link", func(t *testing.T, i *installer) {
		i.must(t, os.Symlink(i.path("tools"), i.place))
	}, nil, "install.folder", "is a symbolic link"},
	{"a relative place", nil, []string{"FUMEHOOD_INSTALL_DIR=here"}, "install.folder", "invalid installation path"},
	{"a place with a way up", nil, []string{"FUMEHOOD_INSTALL_DIR=/var/lib/../../tmp"}, "install.folder", "invalid installation path"},
	{"no such release", nil, []string{"FUMEHOOD_RELEASE_URL=http://127.0.0.1:1/v9.8.7"}, "install.download", "cannot download http://127.0.0.1:1/"},
	{"a mirror without encryption", nil, []string{"FUMEHOOD_RELEASE_URL=http://mirror.example/x"}, "install.url", "http://mirror.example"},
	{"a mirror that only looks like this machine", nil, []string{"FUMEHOOD_RELEASE_URL=http://127.0.0.1.example/x"}, "install.url", "127.0.0.1.example"},
	{"a mirror that is a file", nil, []string{"FUMEHOOD_RELEASE_URL=file:///etc"}, "install.url", "file:///etc"},
	{"a mirror that is an option", nil, []string{"FUMEHOOD_RELEASE_URL=--output=/etc/x"}, "install.url", "--output"},
	{"a mirror that ends the line", nil, []string{"FUMEHOOD_RELEASE_URL=https://mirror.example\n::add-mask::x"}, "install.url", "mirror.example?::add-mask::x"},
	{"a server without the archive", func(t *testing.T, i *installer) {
		i.env = append(i.env, "FUMEHOOD_RELEASE_URL="+strings.TrimSuffix(env(i.env, "FUMEHOOD_RELEASE_URL"), "v9.8.7")+"v1.1.1")
	}, nil, "install.download", "v1.1.1/fumehood_v9.8.7_linux_"},
	{"a release.env without a digest", release(func(text string) string { return text[:strings.Index(text, "SHA256")] }), nil, "install.release", "has no SHA256_ARCHIVE_"},
	{"a release.env with a digest cut short", release(func(text string) string { return strings.TrimSuffix(text, "\n")[:len(text)-3] }), nil, "install.release", "invalid release.env: SHA256_"},
	{"a release.env with a line of its own", release(func(text string) string { return text + "PATH=/tmp\n" }), nil, "install.release", "unknown key PATH"},
	{"a release.env that leads out of the cache", release(func(text string) string { return strings.ReplaceAll(text, "v9.8.7", "v9.8.7/../..") }), nil, "install.release", "invalid release.env: VERSION="},
	{"a release.env with a command", release(func(text string) string { return strings.Replace(text, "=v9.8.7", "=$(id)", 1) }), nil, "install.release", "invalid release.env: VERSION=$(id)"},
	{"a release.env without a download", release(func(text string) string {
		return strings.Replace(text, "URL=https", "URL=http", 1)
	}), []string{"FUMEHOOD_RELEASE_URL="}, "install.release", "invalid release.env: URL="},
}

func release(change func(string) string) func(*testing.T, *installer) {
	return func(t *testing.T, i *installer) {
		text := string(jobtest.ReadFile(t, i.path("action/release.env")))
		i.write(t, "action/release.env", []byte(change(text)))
	}
}

// THREATS 31: wrong bytes, whatever their source, are never started.
func TestE2EInstallRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range oneIn(t, 1, 8, refusedInstalls) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // one of them waits for retries
			i := newInstaller(t, members())
			if c.with != nil {
				c.with(t, i)
			}
			stdout, stderr, code := i.run(t, c.env...)
			i.wantRefused(t, stdout, stderr, code, c.code, c.part)
		})
	}
}

// What is wrong in the tool cache is reported, downloaded again and replaced: neither a
// hostile job nor an interrupted copy blocks the jobs after it.
func TestE2EInstallReplacesTheCache(t *testing.T) {
	t.Parallel()
	link := func(target string) func(*installer) error {
		return func(i *installer) error { return os.Symlink(target, i.cached()) }
	}
	bytes := func(change func([]byte) []byte) func(*installer) error {
		return func(i *installer) error { return os.WriteFile(i.cached(), change(slices.Clone(i.archive)), 0o644) }
	}
	for name, c := range map[string]struct {
		put  func(*installer) error
		part string
	}{
		"one byte":        {bytes(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), "has SHA-256"},
		"truncated":       {bytes(func(b []byte) []byte { return b[:len(b)/2] }), "has SHA-256"},
		"empty":           {bytes(func([]byte) []byte { return nil }), "has SHA-256 " + sum(nil)},
		"link":            {link("/etc/passwd"), "is not a file"},
		"link to nothing": {link("nothing"), "is not a file"},
		"pipe":            {func(i *installer) error { return syscall.Mkfifo(i.cached(), 0o666) }, "is not a file"},
		"directory":       {func(i *installer) error { return os.MkdirAll(i.cached()+"/full/of/files", 0o755) }, "is not a file"},
		"endless file": {func(i *installer) error {
			return errors.Join(os.WriteFile(i.cached(), nil, 0o644), os.Truncate(i.cached(), 1<<40))
		}, "has more than 268435456 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t, members())
			i.fill(t)
			i.must(t, os.RemoveAll(i.place))
			i.must(t, os.Remove(i.cached()))
			i.must(t, c.put(i))
			stdout, stderr, code := i.run(t)
			if code != 0 || !strings.Contains(stdout, "::warning title=fumehood%3A install.cache::") || !strings.Contains(stdout, "started: action\nfrom: "+i.installed("fumehood")) {
				t.Errorf("exit code %d, want a warning and fumehood\n%s%s", code, stdout, stderr)
			}
			if !strings.Contains(stderr, c.part) || i.asked.Load() != 2 {
				t.Errorf("%d downloads, want 2 and %q in\n%s", i.asked.Load(), c.part, stderr)
			}
			if info, err := os.Lstat(i.cached()); err != nil || !info.Mode().IsRegular() || sum(jobtest.ReadFile(t, i.cached())) != sum(i.archive) {
				t.Errorf("the tool cache was not repaired: %v", err)
			}
			if data := string(jobtest.ReadFile(t, "/etc/passwd")); !strings.HasPrefix(data, "root:") {
				t.Fatal("the target of a link was changed")
			}
		})
	}
}

// A tool cache that another user can block still does not stop the job.
func TestE2EInstallBlockedCache(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	i.user = 65534
	i.must(t, os.MkdirAll(i.cached()+"/full", 0o755)) // of root: this user cannot remove it
	stdout, stderr, code := i.run(t, "INPUT_PHASE=report")
	if code != 0 || !strings.Contains(stdout, "started: action\n") || !strings.Contains(stderr, "cannot write to the tool cache") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// An archive with the digest of release.env is still not unpacked over other files.
func TestE2EInstallRefusesMembers(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]member{
		"way up":           {name: "../fumehood", kind: tar.TypeReg},
		"absolute":         {name: "/etc/fumehood-canary", kind: tar.TypeReg},
		"link":             {name: "gvisor-bin/gvisor-sentry-prewarmer", link: "/bin/sh", kind: tar.TypeSymlink},
		"hard link out":    {name: "gvisor-bin/gvisor_sentry", link: "../../../bin/sh", kind: tar.TypeLink},
		"device":           {name: "fumehood-init", kind: tar.TypeChar},
		"one more sidecar": {name: "gvisor-bin/runsc-metric-server", kind: tar.TypeReg},
		"line feed":        {name: "fumehood\nfumehood", kind: tar.TypeReg},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstaller(t, append(members(), m))
			stdout, stderr, code := i.run(t)
			i.wantRefused(t, stdout, stderr, code, "install.archive", "unexpected member in the archive")
			if left, _ := filepath.Glob(filepath.Join(i.place, "*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// While another process of the same user rewrites the tool cache as fast as possible,
// either the right program starts or none does. Root never stores another one.
func TestE2EInstallRace(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	i.fill(t)
	evil := packed(t, append([]member{{name: "fumehood", text: "#!/bin/sh\necho evil\n", kind: tar.TypeReg}}, members()[2:]...))
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			data := [][]byte{i.archive, evil}[n%2]
			if n%4 < 2 { // in place, so that an open file changes
				_ = os.WriteFile(i.cached(), data, 0o644)
			} else {
				_ = os.WriteFile(i.cached()+".new", data, 0o644)
				_ = os.Rename(i.cached()+".new", i.cached())
			}
			time.Sleep(time.Duration(n%5) * time.Millisecond)
		}
	})
	outcomes := map[string]int{}
	for range either(20, 3, 100) {
		i.must(t, os.RemoveAll(i.place))
		stdout, stderr, code := i.run(t)
		switch {
		case strings.Contains(stdout, "evil"):
			t.Fatalf("the other program was started\n%s%s", stdout, stderr)
		case code == 0:
			outcomes["started"]++
			wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
		case code == 3 && strings.Contains(stderr, "install.digest"):
			outcomes["refused"]++
		default:
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		found, _ := filepath.Glob(filepath.Join(i.place, "*", "fumehood"))
		for _, path := range found {
			if data := jobtest.ReadFile(t, path); string(data) != program {
				t.Fatalf("root keeps another program: %s", data)
			}
		}
	}
	close(stop)
	work.Wait()
	t.Logf("%v", outcomes)
}

// Several jobs of one machine install at once: all start, and one directory remains.
func TestE2EInstallAtOnce(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	script := i.path("action/.github/action/install.sh")
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			stdout, stderr, code := i.bash(t, []string{"bash", "-p", script})
			if code != 0 || !strings.Contains(stdout, "started: action\nfrom: "+i.installed("fumehood")) {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	work.Wait()
	if found, _ := filepath.Glob(filepath.Join(i.place, "*")); len(found) != 1 {
		t.Errorf("left behind: %q", found)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(i.cached()), ".new-*")); len(left) > 0 {
		t.Errorf("left in the tool cache: %q", left)
	}
}

// Root hashes the bytes in its own copy, whatever was hashed before.
func TestE2EPlaceHashesItsOwnCopy(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	list := members()
	evil := packed(t, append(list[:1:1], append([]member{{name: "fumehood", text: "evil", kind: tar.TypeReg}}, list[2:]...)...))
	i.write(t, "evil", evil)
	script := fmt.Sprintf("exec bash -p %s root %s %s %s %s < %s", i.path("action/.github/action/place.sh"), i.place,
		sum(i.archive), sum([]byte(program)), sum([]byte("runsc")), i.path("evil"))
	stdout, _, code := i.bash(t, []string{"bash", "-c", script})
	if code != 3 || !strings.HasPrefix(stdout, "install.digest\tthe archive changed after it was checked") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	// The archive's digest is right; that of the program in it is wrong.
	script = strings.Replace(script, sum(i.archive), sum(evil), 1)
	stdout, _, code = i.bash(t, []string{"bash", "-c", script})
	if code != 3 || !strings.HasPrefix(stdout, "install.digest\t") || !strings.Contains(stdout, "/fumehood has SHA-256") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if left, _ := filepath.Glob(filepath.Join(i.place, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A user without sudo can report, and a message says what running requires.
func TestE2EInstallWithoutRoot(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	i.user = 65534
	stdout, stderr, code := i.run(t)
	i.wantRefused(t, stdout, stderr, code, "install.root", "sudo does not work without a password here")
	for _, phase := range []string{"report", "trigger"} {
		stdout, stderr, code = i.run(t, "INPUT_PHASE="+phase)
		wantStarted(t, stdout, stderr, code, i.path("temp/fumehood-"))
		if !strings.Contains(stdout, "user: 65534\n") {
			t.Errorf("phase %s runs as another user:\n%s", phase, stdout)
		}
	}
	if _, err := os.Stat(i.place); err == nil {
		t.Error("something was installed without root")
	}
}

func TestE2EInstallRefusesOtherSystems(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]string{
		"Darwin": "this runner is Darwin; gVisor needs Linux", "MINGW64_NT-10.0": "this runner is MINGW64_NT-10.0", "Linux": "unsupported architecture riscv64",
	} {
		t.Run(system, func(t *testing.T) {
			i := newInstaller(t, members())
			script := "uname() { [ \"$1\" = -s ] && echo " + system + " || echo riscv64; }; export -f uname; exec bash " + i.path("action/.github/action/install.sh")
			stdout, stderr, code := i.bash(t, []string{"bash", "-c", script})
			i.wantRefused(t, stdout, stderr, code, "install.system", want)
			if !strings.Contains(stderr, "runs-on: ubuntu-24.04") {
				t.Errorf("the hint has no YAML:\n%s", stderr)
			}
		})
	}
}

func (i *installer) cached() string {
	return filepath.Join(i.path("tools"), "fumehood", "v9.8.7", runtime.GOARCH, i.name)
}

func (i *installer) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill installs once, so that the next run finds everything in place.
func (i *installer) fill(t *testing.T) {
	t.Helper()
	stdout, stderr, code := i.run(t)
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
}

func (i *installer) under(path string) string { return strings.TrimPrefix(path, i.dir+"/") }

// swap replaces path by something else.
func (i *installer) swap(t *testing.T, path string, with func(string) error) {
	t.Helper()
	i.must(t, os.Remove(path))
	i.must(t, with(path))
}

// append adds a byte to an installed file.
func (i *installer) append(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(i.installed(name), os.O_APPEND|os.O_WRONLY, 0)
	i.must(t, err)
	_, err = f.WriteString("#")
	i.must(t, err)
	i.must(t, f.Close())
}

func env(list []string, name string) string {
	at := slices.IndexFunc(list, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	return strings.TrimPrefix(list[at], name+"=")
}

// wantRefused checks for exit code 3, one annotation, a hint, and the conclusion.
func (i *installer) wantRefused(t *testing.T, stdout, stderr string, exit int, code, part string) {
	t.Helper()
	if exit != 3 || strings.Contains(stdout, "started:") {
		t.Errorf("exit code %d, want 3 and nothing started\n%s%s", exit, stdout, stderr)
	}
	if !strings.Contains(stderr, "fumehood: "+code+": ") || !strings.Contains(stderr, part) || !strings.Contains(stderr, "\nfumehood: hint: ") {
		t.Errorf("want %s and %q with a hint, got:\n%s", code, part, stderr)
	}
	if !strings.HasPrefix(stdout, "::error title=fumehood%3A "+code+"::") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("want one annotation for %s, got:\n%s", code, stdout)
	}
	if left, _ := filepath.Glob(i.path("temp/fumehood-*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %q", left)
	}
	if output := string(jobtest.ReadFile(t, i.path("output"))); output != "conclusion=error\n" {
		t.Errorf("the outputs are %q", output)
	}
}
