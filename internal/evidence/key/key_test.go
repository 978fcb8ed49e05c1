// SPDX-License-Identifier: Apache-2.0

package key

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := proposal.FailureOf(err); err == nil || got.Code != code || got.Hint == "" {
		t.Errorf("%+v, want %s", got, code)
	}
}

// TestGenerate: what is generated signs and verifies, and only its owner can read it.
func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	log, bundle := filepath.Join(dir, "log.key"), filepath.Join(dir, "bundle.pem")
	verifier, err := GenerateLog(log, "acme.example/fumehood")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := audit.ReadSigner(log); err != nil || s.Key()+"\n" != verifier {
		t.Errorf("%v, %v, want %s", s, err, verifier)
	}
	public, err := GenerateBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(dir, "bundle.pub")
	if err := os.WriteFile(named, []byte(public), 0o644); err != nil {
		t.Fatal(err)
	}
	if keys, err := source.ReadKeys([]string{named}); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
	for path, want := range map[string]string{log: verifier, bundle: public} {
		if got, err := ReadPublic(path); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestNeverOverwritten: a key, an empty file and a dangling link stay as they are.
func TestNeverOverwritten(t *testing.T) {
	dir := t.TempDir()
	full, link := filepath.Join(dir, "full"), filepath.Join(dir, "link")
	if err := os.WriteFile(full, []byte("a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{full, link} {
		_, err := GenerateLog(path, "a")
		wantCode(t, err, "key.exists")
		_, err = GenerateBundle(path)
		wantCode(t, err, "key.exists")
	}
	if data, err := os.ReadFile(full); err != nil || string(data) != "a key" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("written through a link")
	}
	_, err := GenerateLog(filepath.Join(dir, "none", "key"), "a")
	wantCode(t, err, "key.not-writable")
}

func TestRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for _, name := range []string{"", "a b", "a+b", "a\nb", "\u00e4"} {
		_, err := GenerateLog(path, name)
		wantCode(t, err, "audit.key")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was left")
	}
	for text, code := range map[string]string{"": "policy.key", "PRIVATE+KEY+x": "audit.key", "-----BEGIN PUBLIC KEY-----\n": "policy.key"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadPublic(path)
		wantCode(t, err, code)
	}
	_, err := ReadPublic(path + "x")
	wantCode(t, err, "policy.key")
}
