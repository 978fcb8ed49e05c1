// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// In a fresh clone, one command runs the demo, and its log is sealed.
func TestDemoFromClone(t *testing.T) {
	d := newDesk(t)
	d.clone(t)
	log := d.path("demo.jsonl")
	comment := d.goRun(t, "demo", "--output", "markdown", "--audit", log, "--artifacts", d.path("demo"))
	for part, want := range map[string]string{
		"marker":               "<!-- fumehood:report -->\n",
		"header":               "## ❌ fumehood: 2 failed, 2 denied, 1 waiting for approval, 1 not run, 5 succeeded\n",
		"the test that failed": "billing_test.go:35: invoice 15550 and credit note -15547 leave 3 cents: VAT(-1050, 2100) = -220, want -221",
		"needs":                "it needs <code>&#34;unit&#34;</code>, which did not succeed",
		"un-analysable":        "⛔&nbsp;<b><code>configured</code></b> denied: ",
		"hostile":              "⛔&nbsp;<b><code>bootstrap</code></b> denied: ",
		"why it is denied":     "no policy grants the host <code>&#34;get.billing.example&#34;</code>",
		"too slow":             "⏱️&nbsp;<b><code>soak</code></b> killed: wall limit 2s",
		"approval":             "✋&nbsp;<b><code>close</code></b> needs approval",
		"what is readable":     "on the host is readable inside, so that the demo&#39;s Go test takes seconds",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("%s: the comment does not hold %q", part, want)
		}
	}
	if strings.Contains(comment, "├─ asm ×") {
		t.Error("the Go test compiles the standard library inside, which go run has compiled outside")
	}
	if t.Failed() {
		t.Logf("%s", comment)
	}
	verdict := d.goRun(t, "verify", log, "--untrusted-key")
	if !strings.Contains(verdict, "sealed") {
		t.Errorf("verify says %q", verdict)
	}
}

// clone clones the repository under test, whatever its owner, into clone.
func (d desk) clone(t *testing.T) {
	t.Helper()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "gitconfig", "[safe]\n\tdirectory = *\n")
	cmd := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-hardlinks", repo, d.path("clone"))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+d.path("gitconfig"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot clone: %v\n%s", err, out)
	}
}

// goRun runs fumehood from the clone and returns its output.
func (d desk) goRun(t *testing.T, args ...string) string {
	t.Helper()
	cmd := goCommand(t.Context(), d.path("clone"), append([]string{"run", "./cmd/fumehood"}, args...)...)
	cmd.Env = append(os.Environ(), "FUMEHOOD_CACHE="+d.cache)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("go run ./cmd/fumehood %s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	return cmd
}
