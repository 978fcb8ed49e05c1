// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// TestE2EEmbed builds a program in a separate module and runs it: main has at most 20 lines.
func TestE2EEmbed(t *testing.T) {
	installtest.Runsc(t)
	dir := embedModule(t)
	program := copyFile(t, "testdata/embed/main.go", dir)
	if _, main, _ := strings.Cut(program, "\nfunc main"); strings.Count(main, "\n") > 20 {
		t.Errorf("the program is too long:\n%s", program)
	}
	command(t, dir, "go", "build", "-mod=mod", "-o", "embed")
	for text, want := range map[string]string{
		"grep -c module go.mod": "{1 1 0 0 1 0 0 0 0 0 0} <nil>\n",
		"curl example.com":      "{1 0 1 0 0 0 0 0 0 0 0} <nil>\n",
	} {
		if got := command(t, dir, "./embed", text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestE2EEmbedAll builds a program in a separate module that fills the options, runs a plan and a session,
// and reads what they leave. It can name everything that it needs.
func TestE2EEmbedAll(t *testing.T) {
	installtest.Runsc(t)
	dir := embedModule(t)
	for name, text := range map[string]string{
		"workspace/go.mod": "module x\n", "workspace/secret": "correct-horse\n",
		"policy/deny.rego": "package fumehood.command\n\ndeny contains {\"rule\": \"read.rev\", \"message\": \"no rev\", \"suggestion\": \"use cat\"} if input.command.program == \"rev\"\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, "testdata/embed/full/main.go", filepath.Join(dir, "full"))
	command(t, dir, "go", "build", "-mod=mod", "-o", "embed", "./full")
	const want = `step 1 of 4 make true
step 2 of 4 made false
step 3 of 4 denied false
step 4 of 4 secret false
make allow ""
made allow "made\n"
denied deny
secret allow "[redacted PASSWORD]\n"
3 true true
verified true <nil>
shown "new\n"
allow
1 files, "new\n", 1 succeeded, [commands can read the host directory policy]
`
	if diff := cmp.Diff(want, command(t, dir, "./embed")); diff != "" {
		t.Error(diff)
	}
}

// embedModule returns the directory of a module that uses this one.
func embedModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, "testdata/embed/go.mod", dir)
	copyFile(t, "../../go.sum", dir)
	command(t, dir, "go", "mod", "edit", "-replace=github.com/fumehood/fumehood="+root)
	return dir
}

func copyFile(t *testing.T, from, dir string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(from)), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// command runs a command in dir, without downloading modules.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
