// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// comparingInit builds an init that fails if the kernel's listing of what was written differs from what a system call
// for each file finds.
func comparingInit(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "init")
	cmd := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-buildvcs=false", "-o", path, "./guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// Whatever processes do with files, in whatever way and for however long, the kernel lists it as system calls show it.
func TestListing(t *testing.T) {
	t.Parallel()
	o := watchedOptions(t)
	o.Init = comparingInit(t)
	for _, name := range []string{"a/b/c", "a/c", "b", "c/a/a", "d/d/d"} {
		path := filepath.Join(o.Workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, "below")
	}
	r, random := testRunner(t, o), sample.Random(t)
	run := func(text string) proposal.Result {
		t.Helper()
		result := runText(t, r, text)
		if !result.Succeeded() {
			t.Errorf("%s: %s %d, %s%s", text, result.Status, result.ExitCode, result.Stdout.Head, result.Stderr.Head)
		}
		return result
	}
	if got := run("/opt/bin/tricks deep"); got.Changes.Omitted == 0 {
		t.Error("no place is left out, though its path is too long")
	}
	run("rm -r ddd*")
	for range 5 {
		run(fmt.Sprintf("/opt/bin/tricks scribble %d 400", random.Uint64()))
	}
	run(fmt.Sprintf("/opt/bin/tricks scribbleinside %d 400", random.Uint64()))
	p, _ := background(t, r, "forever", fmt.Sprintf("/opt/bin/tricks scribble %d forever", random.Uint64()))
	for range 5 {
		run(fmt.Sprintf("/opt/bin/tricks scribble %d 400", random.Uint64()))
		run("sleep 0.1")
	}
	if ended(p) {
		t.Error("the scribbler in the background has ended")
	}
}

// A write through a mapping, which changes no time, is a change; a mapping that stays may write again.
func TestChangesByMapping(t *testing.T) {
	t.Parallel()
	o := watchedOptions(t)
	write(t, filepath.Join(o.Workspace, "below"), strings.Repeat("x", 20_000))
	r := testRunner(t, o)
	changes := func(text, want string) {
		t.Helper()
		var got []string
		for _, c := range runText(t, r, text).Changes.Files {
			got = append(got, c.Kind+" "+c.Path)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	changes("cp below above; touch other", "added above, added other")
	for _, name := range []string{"above", "below", "above", "below"} {
		changes("/opt/bin/tricks overwrite "+name, "changed "+name)
		changes("cat above below", "")
	}
	p, _ := background(t, r, "mapped", "/opt/bin/tricks overwrite above hold")
	changes("true", "changed above")
	changes("mv above moved", "removed above, added moved")
	changes("true", "changed moved")
	p.Kill(proposal.KilledInterrupted)
	<-p.Done()
	changes("true", "changed moved")
	changes("true", "")
}
