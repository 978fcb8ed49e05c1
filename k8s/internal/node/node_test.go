// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/evidence/key"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	first  = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	second = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

const whole = `policies = "/usr"
keys = ["/etc/hostname"]
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
		whole + "pause = []": "node.config", whole + "log_limit = 0": "node.config", whole + "state = \"/" + strings.Repeat("x", 60) + "\"": "node.config", strings.Replace(whole, `"/etc/hostname"`, "", 1): "node.config", strings.Replace(whole, "/usr", "/missing", 1): "node.config",
	} {
		configure(t, text)
		if _, err := Read(); code(err) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The configuration in the documentation is one.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/KUBERNETES.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```toml\n(   policies.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("there is none")
	}
	text := strings.NewReplacer("/etc/fumehood/policies", "/usr", "/etc/fumehood/policy.pem", "/etc/hostname").Replace(string(found[1]))
	configure(t, text)
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

// generateKey writes a key pair to dir.
func generateKey(t *testing.T, dir string) (private, public string) {
	t.Helper()
	private, public = filepath.Join(dir, "key.pem"), filepath.Join(dir, "public.pem")
	text, err := key.GenerateBundle(private)
	if err == nil {
		err = os.WriteFile(public, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

// bundle returns one that denies a tool, without and with a signature.
func bundle(t *testing.T, private, tool string) (plain, signed []byte) {
	t.Helper()
	rule := fmt.Sprintf("package fumehood.command\n\ndeny contains {\"rule\": \"a.b\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.tool == %q\n", tool)
	plain, err := source.Build(source.Recipe{Files: []policy.File{{Name: "a.rego", Content: []byte(rule)}}})
	if err == nil {
		signed, err = source.Signing{Key: private, KeyID: source.DefaultKeyID}.Sign("a", plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain, signed
}

// A bundle must have its digest and a signature, and a pod whose bundle is gone is revoked.
func TestEngine(t *testing.T) {
	dir := t.TempDir()
	private, public := generateKey(t, dir)
	plain, signed := bundle(t, private, "date")
	put := func(digest string, data []byte) string {
		path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".tar.gz")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := source.Digest(signed)
	configure(t, "policies = \""+dir+"\"\nkeys = [\""+public+"\"]\nrunsc = \"/r\"\nstate = \""+dir+"/s\"\nlogs = \""+dir+"/l\"\nlog_limit = 1000000000000000\ndefault = \""+good+"\"\n")
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
	wantChecks(t, "configuration ok", "runsc missing", "state ok", "logs limited", "policy ok")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantChecks(t, "configuration ok", "runsc missing", "state ok", "logs limited", "policy missing")
	if err := Revoked("a", "", good); code(err) != "pod.revoked" {
		t.Errorf("%v", err)
	}
}

// No mount shows what is the node's own, by whatever name.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"own/logs", "own/state", "own/policies", "volume"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "own/logs", "up": "own", "named": "own/policies", "volume/out": "../own/state"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "own", "key")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Logs: dir + "/own/logs", State: dir + "/own/state/", Policies: dir + "/named", Keys: []string{key}, LogKey: "", file: dir + "/own/missing"}
	for source, want := range map[string]string{
		"own/logs": "pod.mount", "own": "pod.mount", "own/": "pod.mount", "": "pod.mount", "link": "pod.mount", "up": "pod.mount", "up/state": "pod.mount", "own/policies": "pod.mount",
		"named": "pod.mount", "own/key": "pod.mount", "volume/out": "pod.mount", "volume/../own": "pod.mount", "nothing": "pod.mount", "volume": "", "volume/.": "",
	} {
		if err := c.Hidden(dir + "/" + source); code(err) != want {
			t.Errorf("%q: %v", source, err)
		}
	}
	if err := c.Hidden("/"); code(err) != "pod.mount" {
		t.Errorf("the root of the node: %v", err)
	}
}

// What another user could change is not a configuration.
func TestPrivate(t *testing.T) {
	configure(t, whole)
	path := os.Getenv(Variable)
	for _, test := range []struct {
		name string
		mode os.FileMode
		want string
	}{{path, 0o644, ""}, {path, 0o664, "node.config"}, {path, 0o602, "node.config"}, {path, 0o600, ""}, {filepath.Dir(path), 0o777, "node.config"}, {filepath.Dir(path), 0o755, ""}} {
		if err := os.Chmod(test.name, test.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(); code(err) != test.want {
			t.Errorf("%s %o: %v", test.name, test.mode, err)
		}
	}
	if err := os.Chown(path, 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(); code(err) != "node.config" {
		t.Errorf("of another user: %v", err)
	}
}

func wantChecks(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, k := range Check(t.Context()) {
		got = append(got, k.Name+" "+k.State)
		if k.Detail == "" || (k.Fix == "") != (k.State == doctor.OK) {
			t.Errorf("%+v", k)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
