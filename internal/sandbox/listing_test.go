// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
