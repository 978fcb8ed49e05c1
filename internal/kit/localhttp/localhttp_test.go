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
		if l, err := ListenLoopback(t.Context(), addr, "x.address"); err == nil || proposal.FailureOf(err).Code != "x.address" {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
}

func TestReadTokens(t *testing.T) {
	for name, text := range map[string]string{"empty": "\n", "short": "secret\n", "with a space": token + " " + token,
		"no tenant": token + " tenant=", "tenant is none": token + " tenant=../a", "two": token + " tenant=a tenant=b", "a token of two tenants": token + " tenant=a\n" + token + " tenant=b"} {
		if _, err := ReadTokens(writeFile(t, "t", text), "x.token", true); err == nil || proposal.FailureOf(err).Code != "x.token" || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := writeFile(t, "t", token)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(open, "x.token", true); err == nil {
		t.Error("a file that others can read is accepted")
	}
	if _, err := ReadTokens("missing", "x.token", true); err == nil {
		t.Error("a missing file is accepted")
	}
}

func TestTenant(t *testing.T) {
	other := strings.ToUpper(token)
	tokens, err := ReadTokens(writeFile(t, "t", token+" tenant=team-a\n"+other+"\n"), "x.token", true)
	if err != nil {
		t.Fatal(err)
	}
	a, b := tokens.Find(token), tokens.Find(other)
	if a.Tenant != "team-a" || b.Tenant != "" || a.Name == b.Name || b.Name == "" {
		t.Errorf("found %+v and %+v", a, b)
	}
	if none := tokens.Find(token + " tenant=team-a"); none != (User{}) {
		t.Errorf("the whole line is a token: %+v", none)
	}
	if _, err := ReadTokens(writeFile(t, "t", token+" tenant=team-a\n"), "x.token", false); err == nil {
		t.Error("a tenant is accepted where there are none")
	}
}
