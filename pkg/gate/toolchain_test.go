// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A tool of a home directory runs inside, in the version that the host has; nothing else
// of the home directory is there. One that is not shown is in the report.
func TestToolchainOutsideUsr(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	root, err := os.MkdirTemp("/opt", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	home := filepath.Join(root, "home")
	for name, text := range map[string]string{
		".pyenv/version": "9.8.7", ".pyenv/shims/python3": "#!/bin/sh\nexit 3", ".pyenv/versions/9.8.7/lib/x": "", ".pyenv/versions/1.2.3/lib/x": "",
		".pyenv/versions/9.8.7/bin/python3": "#!/bin/sh\necho Python 9.8.7; test \"$1\" = --version", ".npmrc": "token", ".asdf/shims/git": "#!/bin/sh", ".asdf/installs/x": "",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testprogram.WriteExecutable(t, path, text)
	}
	if err := os.Chmod(root, 0o711); err != nil { // as many systems protect homes
		t.Fatal(err)
	}
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, ".python-version"), []byte("9.9.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(t.Context(), gate.Options{Workspace: workspace, Tools: home + "/.pyenv/shims:" + home + "/.asdf/shims:/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	report, err := g.Run(t.Context(), decode(t, `
schema: fumehood.plan/v1
proposals:
  - {id: version, run: python3 --version}
  - {id: old, run: python3 -c x}
  - {id: home, run: "ls -A `+root+` `+home+` `+home+`/.pyenv `+home+`/.pyenv/versions"}
`))
	if err != nil {
		t.Fatal(err)
	}
	out := func(i int) string { return output(report.Records[i]) }
	if got := out(0); got != "Python 9.8.7\n" {
		t.Errorf("python3 --version: %q", got)
	}
	if got := strings.Join(strings.Fields(strings.ReplaceAll(out(2), root, "ROOT")), " "); got != "ROOT: home ROOT/home: .pyenv ROOT/home/.pyenv: versions ROOT/home/.pyenv/versions: 9.8.7" {
		t.Errorf("visible: %q", got)
	}
	if c := report.Records[1].Cause; c == nil || c.Reason != "Python 9.8.7 is too old: .python-version wants 9.9.1" {
		t.Errorf("old: cause %+v of %+v", c, report.Records[1].Result)
	}
	if len(report.Run.Unenforced) != 1 || !strings.Contains(report.Run.Unenforced[0], "git is /usr/bin/git inside, not "+home+"/.asdf/shims/git as in your PATH") {
		t.Errorf("%q", report.Run.Unenforced)
	}
	for _, tool := range report.Run.Toolchains {
		if tool.Name == "python3" && tool == (proposal.Toolchain{Name: "python3", Version: "9.8.7", Path: home + "/.pyenv/versions/9.8.7/bin/python3"}) {
			return
		}
	}
	t.Errorf("%+v", report.Run.Toolchains)
}

// output returns what a command printed.
func output(r proposal.Record) string {
	if r.Result == nil {
		return r.Decision.Effect.String()
	}
	return string(r.Result.Stdout.Head) + string(r.Result.Stderr.Head)
}
