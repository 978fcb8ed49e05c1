// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/key"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	first  = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	second = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

const whole = `policies = "/p"
keys = ["/k"]
runsc = "/r"
`

func configure(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(Variable, path)
}

func code(err error) string {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		return stopped.Code
	}
	return ""
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		whole: "", whole + "default = \"" + first + "\"": "", "": "node.config", "x": "node.config", whole + "unknown = 1": "node.config",
		whole + "default = \"main\"": "node.config", whole + "[namespaces]\na = [\"latest\"]": "node.config", whole + "state = \"run\"": "node.config",
		whole + "pause = []": "node.config", whole + "log_limit = 0": "node.config", strings.Replace(whole, `"/k"`, "", 1): "node.config",
	} {
		configure(t, text)
		if _, err := Read(); code(err) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The configuration in the documentation is one.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/KUBERNETES.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n(   policies.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("there is none")
	}
	configure(t, string(found[1]))
	c, err := Read()
	if err != nil || len(c.Namespaces) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A pod gets what the node allows to its namespace, and nothing that it chooses itself.
func TestChoose(t *testing.T) {
	c := Config{Default: first, Namespaces: map[string][]string{"a": {second}, "": {second}}}
	for _, test := range []struct{ namespace, named, want string }{
		{"a", "", first}, {"b", "", first}, {"a", second, second}, {"b", second, ""}, {"a", first, ""}, {"a", "sha256:3", ""}, {"a", "../" + second, ""}, {"A", second, ""},
	} {
		got, err := c.Choose(test.namespace, test.named)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
	if _, err := (Config{}).Choose("a", ""); code(err) != "pod.policy" {
		t.Errorf("%v", err)
	}
}

// A bundle must have its digest and a signature, and a pod whose bundle is gone is revoked.
func TestEngine(t *testing.T) {
	dir := t.TempDir()
	private, public := filepath.Join(dir, "key.pem"), filepath.Join(dir, "public.pem")
	text, err := key.GenerateBundle(private)
	if err == nil {
		err = os.WriteFile(public, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := source.Build(source.Recipe{Files: []policy.File{{Name: "a.rego", Content: []byte("package fumehood.command\n\ndeny contains {\"rule\": \"a.b\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.tool == \"date\"\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := source.Signing{Key: private, KeyID: source.DefaultKeyID}.Sign("a", plain)
	if err != nil {
		t.Fatal(err)
	}
	put := func(digest string, data []byte) string {
		path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".tar.gz")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := source.Digest(signed)
	configure(t, "policies = \""+dir+"\"\nkeys = [\""+public+"\"]\nrunsc = \"/r\"\ndefault = \""+good+"\"\n")
	c, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	path := put(good, signed)
	put(source.Digest(plain), plain)
	put(first, signed)
	for digest, want := range map[string]string{good: "", source.Digest(plain): source.CodeSignature, first: source.CodeDigest, second: "policy.missing"} {
		if _, err := c.Engine(t.Context(), digest); code(err) != want {
			t.Errorf("%s: %v", digest, err)
		}
	}
	if err := Revoked("a", "", good); err != nil {
		t.Error(err)
	}
	if err := Revoked("a", second, second); code(err) != "pod.revoked" {
		t.Errorf("%v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Revoked("a", "", good); code(err) != "pod.revoked" {
		t.Errorf("%v", err)
	}
}
