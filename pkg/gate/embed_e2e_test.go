// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package gate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// TestE2EEmbed builds a program in a separate module and runs it: main has at most 20 lines.
func TestE2EEmbed(t *testing.T) {
	installtest.Runsc(t)
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := copyFile(t, "testdata/embed/main.go", dir)
	if _, main, _ := strings.Cut(program, "\nfunc main"); strings.Count(main, "\n") > 20 {
		t.Errorf("the program is too long:\n%s", program)
	}
	copyFile(t, "testdata/embed/go.mod", dir)
	copyFile(t, "../../go.sum", dir)
	command(t, dir, "go", "mod", "edit", "-replace=github.com/fumehood/fumehood="+root)
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
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return string(out)
}
