// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func saveRunner(t testing.TB, r *Runner) *Saved {
	t.Helper()
	saved, err := r.Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	})
	return saved
}

// forkRunner returns a Runner with a gate of its own that begins with a copy of saved.
func forkRunner(t testing.TB, o Options, saved *Saved) (*Runner, *recorder) {
	t.Helper()
	rec := &recorder{decide: deny}
	o.Exec, o.Event, o.Artifacts, o.Saved = rec.exec, rec.event, t.TempDir(), saved
	return testRunner(t, o), rec
}

func runCell(t testing.TB, r *Runner, earlier, code string) (string, proposal.Result) {
	t.Helper()
	result, err := r.Run(t.Context(), cellOf("cell", earlier, code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return string(result.Stdout.Head) + string(result.Stderr.Head), result
}

func wantStop(t testing.TB, err error, code, part string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code || !strings.Contains(err.Error(), part) || stop.Hint == "" {
		t.Errorf("%v, want %s with %q", err, code, part)
	}
}

// savedShell is what the shell of the saved sandboxes has run.
const savedShell = "x=kept; grow() { echo \"$x $1\"; }\n/opt/bin/testprogram run /bin/true; cp /opt/bin/canary ~/harmless\n"

// What a gate refuses, and what its shells and files have become, is the same in a sandbox that was never saved, in
// one that was, in a copy of it after it has ended, in a second copy and in a copy of that.
func TestSavedIsGated(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	original := testRunner(t, o)
	runCell(t, original, "", savedShell)
	checkGated(t, "fresh", original, rec)
	saved := saveRunner(t, original)
	checkGated(t, "saved", original, rec)
	forked, forkedRec := forkRunner(t, o, saved)
	checkGated(t, "forked", forked, forkedRec)
	twice, twiceRec := forkRunner(t, o, saveRunner(t, forked))
	checkGated(t, "forked twice", twice, twiceRec)
	if err := original.Close(); err != nil {
		t.Fatal(err)
	}
	restored, restoredRec := forkRunner(t, o, saved)
	checkGated(t, "restored", restored, restoredRec)
}

func checkGated(t *testing.T, name string, r *Runner, rec *recorder) {
	t.Helper()
	for _, text := range []string{
		"/opt/bin/canary",
		"~/harmless",
		"cp /opt/bin/canary new; ./new; rm new",
		"/opt/bin/testprogram run sh -c '/opt/bin/canary; true'",
		"/opt/bin/tricks vfork /opt/bin/canary",
		"/opt/bin/tricks memfd /opt/bin/canary",
		"/opt/bin/tricks userns /opt/bin/canary /usr/bin/true",
	} {
		rec.reset(deny)
		out, result := play(t, r, text)
		if strings.Contains(out, "CANARY") || len(rec.refused()) == 0 || result.NewSandbox {
			t.Errorf("%s: %s: refused %q, output %q, %+v", name, text, rec.refused(), out, result)
		}
	}
	rec.reset(allow)
	if out, _ := play(t, r, "/opt/bin/canary; ~/harmless"); strings.Count(out, "CANARY") != 2 {
		t.Errorf("%s: what is allowed does not run: %q", name, out)
	}
	rec.reset(deny)
	out, result := runCell(t, r, savedShell, "grow up; /opt/bin/canary; /bin/true && echo went on\n")
	if out != "kept up\n/bin/bash: line 4: /opt/bin/canary: Permission denied\nwent on\n" && !strings.Contains(out, "kept up\nwent on\n") ||
		!slices.Contains(rec.refused(), canary) {
		t.Errorf("%s: shell: %q, refused %q, %+v", name, out, rec.refused(), result)
	}
	r.current.interpreters.list["bash main"].shell.earlier.Text = savedShell // for the next sandbox
	rec.reset(deny)
	text := "head -c 3M /dev/zero > /tmp/big; stat -c %s /tmp/big; rm /tmp/big; echo a > made; rm made"
	small := Execution{ID: "x", Text: text, Grant: proposal.Grant{Limits: testLimits()}}
	small.Grant.Limits.Disk = 2 * proposal.MiB
	if result, err := r.Run(t.Context(), small); err != nil || strings.HasPrefix(string(result.Stdout.Head), "3145728") {
		t.Errorf("%s: wrote more than it may: %v, %q", name, err, result.Stdout.Head)
	}
	if out, _ := play(t, r, text); !strings.HasPrefix(out, "3145728") {
		t.Errorf("%s: a smaller limit has outlived its command: %q", name, out)
	}
}

// Copies do not see each other's files or the original's, and their changes are those since the save.
func TestSavedCopiesAreApart(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	r := testRunner(t, o)
	play(t, r, "echo one > before")
	saved := saveRunner(t, r)
	play(t, r, "echo two > before; echo > original")
	for range 2 {
		c, _ := forkRunner(t, o, saved)
		out, result := play(t, c, "cat before; ls; echo three >> before; echo > copy")
		if out != "one\nbefore\n" {
			t.Errorf("%q", out)
		}
		var changed []string
		for _, f := range result.Changes.Files {
			changed = append(changed, f.Kind+" "+f.Path)
		}
		if slices.Sort(changed); !slices.Equal(changed, []string{"added copy", "changed before"}) {
			t.Errorf("changes %q", changed)
		}
		total, err := c.ListChanges(t.Context())
		if err != nil || len(total.Changes.Files) != 2 {
			t.Errorf("all changes %+v, %v", total, err)
		}
	}
}

// What cannot be saved is refused before anything is stopped, and the sandbox goes on.
func TestSaveRefusal(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	r := testRunner(t, o)
	rec.reset(allow)
	_, err := r.Save(t.Context())
	wantStop(t, err, "sandbox.save", "nothing has run")
	p, _ := startPrinting(t, r, Execution{ID: "p", Text: "echo up; sleep 600", Grant: proposal.Grant{Limits: testLimits()}})
	_, err = r.Save(t.Context())
	wantStop(t, err, "sandbox.save", "in the background")
	p.Kill(proposal.KilledCaller)
	outcomeOf(t, p)
	saveRunner(t, r)
	if result, err := r.Run(t.Context(), Execution{ID: "s", Text: "sleep 600 >/dev/null 2>&1 &", Service: true,
		Grant: proposal.Grant{Limits: testLimits()}}); err != nil || !result.Succeeded() {
		t.Fatalf("%v, %+v", err, result)
	}
	_, err = r.Save(t.Context())
	wantStop(t, err, "sandbox.save", "services")
	if out, _ := play(t, r, "echo on"); out != "on\n" {
		t.Errorf("%q", out)
	}
	unwatched := testRunner(t, testOptions(t))
	runText(t, unwatched, "true")
	_, err = unwatched.Save(t.Context())
	wantStop(t, err, "sandbox.save", "not watched")
}

// A saved sandbox that is not as it was left is not restored, nor one under other options. Nothing else is started instead.
func TestRestoreRefusal(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	r := testRunner(t, o)
	play(t, r, "true")
	refused := func(o Options, saved *Saved, part string) {
		t.Helper()
		c, _ := forkRunner(t, o, saved)
		for range 2 {
			_, err := c.Run(t.Context(), Execution{ID: "x", Text: "true", Grant: proposal.Grant{Limits: testLimits()}})
			wantStop(t, err, "sandbox.restore", part)
		}
	}
	saved := saveRunner(t, r)
	other := o
	other.Limits.Pids++
	refused(other, saved, "other options")
	other = o
	other.Runsc += "2"
	refused(other, saved, "other options")
	other = o
	other.Workspace = t.TempDir()
	refused(other, saved, "other options")
	for _, name := range savedFiles {
		saved := saveRunner(t, r)
		path := filepath.Join(saved.dir.Path, name)
		data := readFile(t, path)
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(o, saved, name)
	}
	cut := saveRunner(t, r)
	if err := os.Truncate(filepath.Join(cut.dir.Path, savedFiles[2]), 4096); err != nil {
		t.Fatal(err)
	}
	refused(o, cut, savedFiles[2])
	swapped := saveRunner(t, r)
	for _, name := range savedFiles { // an older one of the same sandbox
		if err := os.Rename(filepath.Join(saved.dir.Path, name), filepath.Join(swapped.dir.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	refused(o, swapped, savedFiles[0])
	closed := saveRunner(t, r)
	info, err := os.Stat(closed.dir.Path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(closed.dir.Path); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	refused(o, closed, "was removed")
}

// What a process that was killed has saved is removed when the next sandbox starts.
func TestSavedIsRemovedAfterKill(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	o.StateDir = t.TempDir()
	r := testRunner(t, o)
	play(t, r, "true")
	kept := saveRunner(t, r)
	abandoned, err := r.Save(t.Context())
	if err == nil {
		err = abandoned.dir.Close() // as the kernel does
	}
	if err != nil {
		t.Fatal(err)
	}
	other := testRunner(t, o)
	play(t, other, "true")
	if err := other.Close(); err != nil { // which waits for that
		t.Fatal(err)
	}
	if _, err := os.Stat(abandoned.dir.Path); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	if _, err := os.Stat(kept.dir.Path); err != nil {
		t.Error(err)
	}
}

// A sandbox that has files and in which nothing has run can be saved, and so can a copy.
func TestSaveAgain(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	r := testRunner(t, o)
	if _, err := r.Put(t.Context(), "put", []byte("1")); err != nil {
		t.Fatal(err)
	}
	saveRunner(t, r)
	runCell(t, r, "", "x=1\n")
	c, _ := forkRunner(t, o, saveRunner(t, r))
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	twice, _ := forkRunner(t, o, saveRunner(t, c))
	if out, _ := runCell(t, twice, "x=1\n", "echo $x\n"); out != "1\n" {
		t.Errorf("%q", out)
	}
}
