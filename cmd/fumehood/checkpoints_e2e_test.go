// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// THREATS 92: the script of docs/CHECKPOINTS.md notices a second log of one run, signed with the same
// key, and an altered one. A log is added once.
func TestE2ECheckpointsOfOneRun(t *testing.T) {
	dir := t.TempDir()
	for _, block := range pageBlock.FindAllStringSubmatch(string(jobtest.ReadFile(t, "../../docs/CHECKPOINTS.md")), -1) {
		if block[2] == "sh" {
			if err := os.WriteFile(filepath.Join(dir, "checkpoints.sh"), []byte(block[3]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	vectors, err := filepath.Abs("../../testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	shell := func(text string) (string, error) {
		command := exec.CommandContext(t.Context(), "sh", "-ec", text)
		command.Dir, command.Env = dir, append(os.Environ(), "HOME="+dir, "V="+vectors, "KEY="+
			"vectors.example/key+5dcde58a+Ad+o2l4L2fVlSNTxPlPRzaoxoNLTTim/f0llo+T67x98")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := shell(`ssh-keygen -q -t ed25519 -N '' -f signer
git init -q -b main runs
git -C runs config user.name x
git -C runs config user.email x@acme.example
git -C runs config gpg.format ssh
git -C runs config user.signingKey "$PWD/signer"`); err != nil {
		t.Fatal(out, err)
	}
	for _, step := range []struct{ command, want string }{
		{`sh checkpoints.sh runs add $V/sealed.log "$KEY"`, ""},
		{`sh checkpoints.sh runs add $V/sealed.log "$KEY" && git -C runs rev-list --count HEAD`, "1"},
		{`sh checkpoints.sh runs check $V/sealed.log`, "sealed and complete: 4 entries"},
		{`! sh checkpoints.sh runs add $V/sealed-100.log "$KEY"`, "another log of this run"},
		{`! sh checkpoints.sh runs check $V/sealed-100.log`, "forked"},
		{`! sh checkpoints.sh runs check $V/entry-edited.log`, "entry-changed"},
		{`! sh checkpoints.sh runs add $V/unsealed.log "$KEY"`, "not added"},
		{`! sh checkpoints.sh runs add $V/sealed.log "$KEY+"`, "not added"},
	} {
		if out, err := shell(step.command); err != nil || !strings.Contains(out, step.want) {
			t.Errorf("%s: %v, want %q:\n%s", step.command, err, step.want, out)
		}
	}
}
