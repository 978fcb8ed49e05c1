// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// newSourceInstaller is a runner with the action at a commit that is built from source, and
// without Go: it needs an earlier build.
func newSourceInstaller(t *testing.T) *installer {
	t.Helper()
	i := newInstaller(t, members())
	i.write(t, "action/release.env", []byte("VERSION=source\n"))
	for _, name := range []string{"cmd/x", "internal/i", "pkg/a/b", "pkg/a-b", "policies/p q.rego", "testdata/t", "tools/t"} {
		i.must(t, os.MkdirAll(filepath.Dir(i.path("action/"+name)), 0o755))
		i.write(t, "action/"+name, []byte(name))
	}
	i.write(t, "action/go.mod", []byte("module github.com/fumehood/fumehood\n"))
	i.write(t, "action/go.sum", nil)
	i.write(t, "action/LICENSE", []byte("text"))
	i.env = append(i.env, "FUMEHOOD_SOURCE_CACHE="+i.path("temp/restored"))
	return i
}

// source is the digest of the action's sources.
func (i *installer) source(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	// In the order of the bytes of their paths: a hyphen is before a slash.
	for _, name := range []string{"LICENSE", "cmd/x", "go.mod", "go.sum", "internal/i", "pkg/a-b", "pkg/a/b", "policies/p q.rego", "testdata/t", "tools/t"} {
		fmt.Fprintf(&all, "%s  %s\n", sum(jobtest.ReadFile(t, i.path("action/"+name))), name)
	}
	return sum(all.Bytes())
}

// restore puts a build where a step of the workflow restores it.
func (i *installer) restore(t *testing.T, env string) {
	t.Helper()
	i.must(t, os.MkdirAll(i.path("temp/restored"), 0o755))
	i.write(t, "temp/restored/release.env", []byte(env))
	i.write(t, i.under(i.restored()), i.archive)
}

func (i *installer) restored() string {
	return i.path("temp/restored/fumehood_source_linux_" + runtime.GOARCH + ".tar.gz")
}

// sourceEnv is the release.env of a build of these sources.
func (i *installer) sourceEnv(t *testing.T) string {
	t.Helper()
	arch := strings.ToUpper(runtime.GOARCH)
	return fmt.Sprintf("VERSION=source\nSOURCE=%s\nGO=go1.26.8\nCC=cc\nSHA256_ARCHIVE_%s=%s\nSHA256_SBOM_%[2]s=%[3]s\nSHA256_FUMEHOOD_%[2]s=%[4]s\nSHA256_RUNSC_%[2]s=%[5]s\n",
		i.source(t), arch, sum(i.archive), sum([]byte(program)), sum([]byte("runsc")))
}

// remember puts a build in the tool cache, as recorded by root.
func (i *installer) remember(t *testing.T) (record, archive string) {
	t.Helper()
	record = filepath.Join(i.place, "source-"+i.source(t))
	archive = filepath.Join(i.path("tools"), "fumehood/source-"+i.source(t), runtime.GOARCH, filepath.Base(i.restored()))
	i.must(t, os.MkdirAll(i.place, 0o755))
	i.must(t, os.WriteFile(record, fmt.Appendf(nil, "%s %s %s\n", sum(i.archive), sum([]byte(program)), sum([]byte("runsc"))), 0o644))
	i.must(t, os.MkdirAll(filepath.Dir(archive), 0o755))
	i.must(t, os.WriteFile(archive, i.archive, 0o644))
	return record, archive
}

// An earlier build of the same sources is used: one that the workflow restored, or one in the
// tool cache whose digest root recorded.
func TestE2ESourceBuildIsFound(t *testing.T) {
	t.Parallel()
	i := newSourceInstaller(t)
	i.restore(t, i.sourceEnv(t))
	stdout, stderr, code := i.run(t)
	wantStarted(t, stdout, stderr, code, i.installed("fumehood"))
	if want := "fumehood source for linux/" + runtime.GOARCH + ", SHA-256 " + sum(i.archive) + ", from " + i.path("temp/restored") + "\n"; !strings.HasPrefix(stdout, want) {
		t.Errorf("want %q, got:\n%s", want, stdout)
	}
	if _, err := os.Stat(i.path("tools/fumehood")); err == nil {
		t.Error("what was restored is in the tool cache, where it outlives the job")
	}
	if found, _ := filepath.Glob(i.place + "/source-*"); len(found) > 0 {
		t.Errorf("root recorded a build that it did not see: %q", found)
	}

	// Beside something that is not used, and that names another version.
	i = newSourceInstaller(t)
	i.remember(t)
	i.restore(t, strings.Replace(i.sourceEnv(t), "=source", "=v9.8.7", 1))
	for _, phase := range []string{"auto", "report"} {
		stdout, stderr, code = i.run(t, "INPUT_PHASE="+phase)
		wantStarted(t, stdout, stderr, code, "/")
		if !strings.Contains(stdout, "\nfumehood source for ") || !strings.Contains(stdout, ", from the tool cache, built from the same sources\n") {
			t.Errorf("where it came from is not told:\n%s", stdout)
		}
	}
}

// A build that is damaged, or that someone other than root or the default branch can have put
// there, is not used: without Go, nothing starts.
func TestE2ESourceBuildIsNotTrusted(t *testing.T) {
	t.Parallel()
	env := func(change func(string) string) func(*testing.T, *installer) {
		return func(t *testing.T, i *installer) { i.restore(t, change(i.sourceEnv(t))) }
	}
	recorded := func(change func(t *testing.T, i *installer, record, archive string)) func(*testing.T, *installer) {
		return func(t *testing.T, i *installer) {
			record, archive := i.remember(t)
			change(t, i, record, archive)
		}
	}
	evil := packed(t, append([]member{{name: "fumehood", text: "#!/bin/sh\necho started: evil\n", kind: '0'}}, members()[2:]...))
	for name, c := range map[string]struct {
		with func(*testing.T, *installer)
		part string // of the warning
	}{
		"nothing":                 {func(*testing.T, *installer) {}, ""},
		"empty directory":         {func(t *testing.T, i *installer) { i.must(t, os.Mkdir(i.path("temp/restored"), 0o755)) }, "has no release.env"},
		"no digest":               {env(func(s string) string { return s[:strings.Index(s, "SHA256")] }), "release.env is damaged"},
		"cut short":               {env(func(s string) string { return s[:len(s)-2] }), "release.env is damaged"},
		"unknown key":             {env(func(s string) string { return s + "PATH=/tmp\n" }), "release.env is damaged"},
		"a release":               {env(func(s string) string { return strings.Replace(s, "=source", "=v9.8.7", 1) }), "other sources"},
		"other sources":           {env(func(s string) string { return strings.Replace(s, "SOURCE=", "SOURCE="+sum(nil)+"\nX=", 1) }), "release.env is damaged"},
		"a source that is forged": {env(func(s string) string { return s + "SOURCE=" + sum(nil) + "\n" }), "other sources"},
		"no source":               {env(func(s string) string { return strings.Replace(s, "SOURCE=", "#", 1) }), "other sources"},
		"a changed file of the source": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.write(t, "action/pkg/a/b", []byte("changed"))
		}, "other sources"},
		"a new file of the source": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.write(t, "action/pkg/a/c", nil)
		}, "other sources"},
		"truncated archive": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.must(t, os.Truncate(i.restored(), 100))
		}, "does not have the digest"},
		"another archive": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.write(t, i.under(i.restored()), evil)
		}, "does not have the digest"},
		"a link to an archive": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.must(t, os.Rename(i.restored(), i.path("temp/elsewhere")))
			i.must(t, os.Symlink(i.path("temp/elsewhere"), i.restored()))
		}, "has no fumehood_source_linux_"},
		"an endless release.env": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.must(t, os.Truncate(i.path("temp/restored/release.env"), 1<<17))
		}, "has no release.env of at most 65536 bytes"},
		"a pipe": {func(t *testing.T, i *installer) {
			i.restore(t, i.sourceEnv(t))
			i.must(t, os.Remove(i.path("temp/restored/release.env")))
			i.must(t, syscall.Mkfifo(i.path("temp/restored/release.env"), 0o666))
		}, "has no release.env"},
		"tool cache without a record": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Remove(record))
		}), ""},
		"tool cache with a record beside it": {recorded(func(t *testing.T, i *installer, record, archive string) {
			i.must(t, os.Rename(record, filepath.Join(filepath.Dir(archive), filepath.Base(record))))
		}), ""},
		"tool cache with another archive": {recorded(func(t *testing.T, i *installer, _, archive string) {
			i.must(t, os.WriteFile(archive, evil, 0o644))
		}), "in the tool cache has SHA-256"},
		"record of another user": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Chown(record, 65534, 65534))
		}), ""},
		"record that others can write": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Chmod(record, 0o646))
		}), ""},
		"record that its group can write": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Chmod(record, 0o664))
		}), ""},
		"record that is a link": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Rename(record, record+".real"))
			i.must(t, os.Symlink(record+".real", record))
		}), ""},
		"record in a directory of another user": {recorded(func(t *testing.T, i *installer, _, _ string) {
			i.must(t, os.Chown(i.place, 65534, 65534))
		}), ""},
		"record that is cut short": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.Truncate(record, 100))
		}), ""},
		"record with more": {recorded(func(t *testing.T, i *installer, record, _ string) {
			i.must(t, os.WriteFile(record, append(jobtest.ReadFile(t, record), " $(id)"...), 0o644))
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newSourceInstaller(t)
			c.with(t, i)
			stdout, stderr, code := i.run(t)
			if code != 3 || strings.Contains(stdout, "started:") || !strings.Contains(stderr, "install.source: the action at this commit is built from source and requires Go") {
				t.Errorf("exit code %d, want nothing started for lack of Go\n%s%s", code, stdout, stderr)
			}
			if warned := strings.Contains(stdout, "::warning title=fumehood%3A install.cache::"); warned != (c.part != "") || !strings.Contains(stderr, c.part) {
				t.Errorf("want a warning with %q, got:\n%s", c.part, stderr)
			}
			if output := string(jobtest.ReadFile(t, i.path("output"))); output != "conclusion=error\n" {
				t.Errorf("the outputs are %q", output)
			}
		})
	}
}

// A directory that an earlier job can have filled is a mistake in the workflow.
func TestE2ESourceCachePlace(t *testing.T) {
	t.Parallel()
	i := newSourceInstaller(t)
	for _, dir := range []string{i.path("tools"), i.path("temp/../tools"), i.path("temp/.."), i.path("temp"), i.path("temporary"), "temp/restored", "/"} {
		i.write(t, "output", nil)
		stdout, stderr, code := i.run(t, "FUMEHOOD_SOURCE_CACHE="+dir)
		if dir == i.path("temp") { // the runner empties it, too
			continue
		}
		i.wantRefused(t, stdout, stderr, code, "install.cache", "FUMEHOOD_SOURCE_CACHE is not in RUNNER_TEMP: ")
	}
	env := slices.DeleteFunc(slices.Clone(i.env), func(s string) bool { return strings.HasPrefix(s, "RUNNER_TEMP=") })
	i.env = env
	stdout, stderr, code := i.run(t)
	if code != 3 || !strings.Contains(stderr, "is not in RUNNER_TEMP") {
		t.Errorf("without RUNNER_TEMP: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// place.sh records a build only as root, and only with valid digests.
func TestE2EPlaceRecords(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, members())
	i.write(t, "archive", i.archive)
	place := func(user int, how, dir, source string) (string, int) {
		i.user = user
		stdout, _, code := i.bash(t, []string{"bash", "-c", fmt.Sprintf("exec bash -p %s %s %s %s %s %s '%s' < %s", i.path("action/.github/action/place.sh"), how, dir,
			sum(i.archive), sum([]byte(program)), sum([]byte("runsc")), source, i.path("archive"))})
		return stdout, code
	}
	source := sum([]byte("source"))
	for range 2 { // installed, then found installed
		if out, code := place(0, "root", i.place, source); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
		record := filepath.Join(i.place, "source-"+source)
		if got, want := string(jobtest.ReadFile(t, record)), fmt.Sprintf("%s %s %s\n", sum(i.archive), sum([]byte(program)), sum([]byte("runsc"))); got != want {
			t.Errorf("recorded %q, want %q", got, want)
		}
		i.must(t, os.Remove(record))
	}
	for _, source := range []string{"../../etc/x", source[:63], source + "\n", "x"} {
		if out, code := place(0, "root", i.place, source); code != 3 || !strings.HasPrefix(out, "install.release\t") {
			t.Errorf("source %q: exit code %d: %s", source, code, out)
		}
	}
	if out, code := place(65534, "own", i.path("temp/own"), source); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if found, _ := filepath.Glob(i.path("temp/own/source-*")); len(found) > 0 {
		t.Errorf("recorded without root: %q", found)
	}
}
