// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completeInZsh does what completeInBash does. In zsh, only completion widgets can add
// matches: _describe prints those instead that begin with the last word.
const completeInZsh = `compdef() { : }
_describe() { print -l -- ${(M)completions:#${LINE##* }*} }
_arguments() { : }
source <(fumehood completion zsh) || exit
words=("${(@s: :)LINE}")
CURRENT=$#words
_fumehood`

// zsh completes what bash completes.
func TestE2ECompletionInZsh(t *testing.T) {
	t.Parallel()
	checkCompletion(t, "zsh", completeInZsh)
}

// groff accepts the pages of the manual.
func TestE2EManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code := runCommandLine(t.Context(), []string{"man", dir}, strings.NewReader(""), os.Stdout, os.Stderr); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "fumehood*.1"))
	if err != nil || len(pages) < 25 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	if out, err := exec.Command("groff", append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
