// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package pkg

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/testprogram"
)

// An ordinary user can run the tests that CONTRIBUTING names: they pass without root.
func TestNightlyWithoutRoot(t *testing.T) {
	page, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`go test \\$\\((go list .*)\\)`").FindSubmatch(page)
	if command == nil {
		t.Fatal("CONTRIBUTING.md has no command for the tests that need no root")
	}
	// In a directory that every user can read.
	dir, err := os.MkdirTemp("/var/tmp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	repository, temporary := filepath.Join(dir, "fumehood"), filepath.Join(dir, "tmp")
	run := func(in string, argv ...string) []byte {
		t.Helper()
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = in
		c.Env = append(os.Environ(), "TMPDIR="+temporary)
		output, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, output)
		}
		return output
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, temporary} {
		if err := os.Chmod(d, os.ModePerm|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	run("..", "git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", ".", repository)
	packages := strings.Fields(string(run(repository, "bash", "-c", string(command[1]))))
	if len(packages) < 70 {
		t.Fatalf("only %d packages need no root: %q", len(packages), packages)
	}
	run(repository, "chown", "-R", "65534:65534", repository)
	// asOther starts a copy of a test program as another user: go's own, and the modules, are in
	// directories of root.
	asOther := filepath.Join(dir, "as-other")
	testprogram.WriteExecutable(t, asOther, `#!/bin/bash -e
copy=$(mktemp -d)/${1##*/}
cp "$1" "$copy"
modules=$(go env GOMODCACHE)
export HOME=${copy%/*} GOMODCACHE=${copy%/*}/modules
unset GOCACHE XDG_CACHE_HOME
mkdir "$GOMODCACHE"
chmod 755 "$HOME" "$copy"
chown -R 65534:65534 "$HOME"
exec unshare --mount bash -ec 'mount --bind "$0" "$GOMODCACHE"
	exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' "$modules" "$copy" "${@:2}"
`)
	tested := bytes.Count(run(repository, append([]string{"go", "test", "-count=1", "-exec", asOther}, packages...)...), []byte("\nok "))
	if tested < 70 {
		t.Errorf("%d packages have tests that need no root", tested)
	}
}
