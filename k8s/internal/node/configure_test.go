// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy/source"
)

// A node gets a configuration, another, and the first one again. What is invalid or incomplete leaves
// the node as it is.
func TestConfigure(t *testing.T) {
	root, keys := t.TempDir(), t.TempDir()
	private, public := generateKey(t, keys)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const head = "policies = \"/etc/fumehood/policies\"\nkeys = [\"/etc/fumehood/keys/policy.pem\"]\n"
	// give returns a directory with a configuration that names the bundle.
	give := func(data []byte, lines string) string {
		dir, digest := t.TempDir(), source.Digest(data)
		if err := errors.Join(os.Mkdir(dir+"/policies", 0o755), os.Mkdir(dir+"/keys", 0o755), os.WriteFile(dir+"/keys/policy.pem", []byte(read(public)), 0o644),
			os.WriteFile(filepath.Join(dir, "policies", strings.TrimPrefix(digest, "sha256:")+".tar.gz"), data, 0o644),
			os.WriteFile(dir+"/node.toml", []byte(head+"default = \""+digest+"\"\n"+lines), 0o644)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	plain, old := bundle(t, private, "date")
	_, newer := bundle(t, private, "id")
	for _, data := range [][]byte{old, newer, old} {
		from := give(data, "")
		if err := Configure(t.Context(), from, root); err != nil || read(root+File) != read(from+"/node.toml") {
			t.Fatalf("%v: %s", err, read(root+File))
		}
	}
	if left, err := os.ReadDir(root + "/etc/fumehood/policies"); len(left) != 2 || err != nil {
		t.Errorf("bundles: %v, %v", left, err)
	}

	was := read(root + File)
	otherKey, missing := give(newer, ""), give(newer, "")
	_, other := generateKey(t, t.TempDir())
	broken, err := filepath.Glob(missing + "/policies/*")
	if err := errors.Join(err, os.Remove(broken[0]), os.WriteFile(otherKey+"/keys/policy.pem", []byte(read(other)), 0o644)); err != nil {
		t.Fatal(err)
	}
	_, foreign := bundle(t, filepath.Join(filepath.Dir(other), "key.pem"), "id")
	rotated := give(foreign, "")
	if err := os.WriteFile(rotated+"/keys/policy.pem", []byte(read(other)), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, from := range map[string]string{
		"not signed": give(plain, ""), "signature": otherKey, "no such file": missing, "unknown key": give(newer, "unknown = 1"), "has another": rotated,
		"log.key": give(newer, "log_key = \"/etc/fumehood/log.key\""), "is not below": give(newer, "log_key = \"/etc/fumehood/../shadow\""), "node.toml": t.TempDir(),
	} {
		err := Configure(t.Context(), from, root)
		if code(err) != "node.config" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if read(root+File) != was {
		t.Errorf("the node has %s", read(root+File))
	}
}
