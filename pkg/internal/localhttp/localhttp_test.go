// SPDX-License-Identifier: Apache-2.0

package localhttp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const token = "0123456789abcdef0123456789abcdef"

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.com:80", "127.0.0.1", "nonsense"} {
		if l, err := Listen(t.Context(), addr, "x.address"); err == nil || proposal.FailureOf(err).Code != "x.address" {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
}

func TestReadTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "\n", "short": "secret\n", "with a space": token + " " + token} {
		if _, err := ReadTokens(writeFile(t, "t", text), "x.token"); err == nil || proposal.FailureOf(err).Code != "x.token" || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := writeFile(t, "t", token)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(open, "x.token"); err == nil {
		t.Error("a file that others can read is accepted")
	}
	if _, err := ReadTokens("missing", "x.token"); err == nil {
		t.Error("a missing file is accepted")
	}
}
