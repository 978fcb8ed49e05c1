// SPDX-License-Identifier: Apache-2.0

//go:build node || cluster

package task_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/agents/session/conformance"
	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/internal/agents/session/remote/certtest"
	"github.com/fumehood/fumehood/internal/evidence/key"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/k8s/internal/nodetest"
	"github.com/fumehood/fumehood/pkg/audit"
)

const noID = `package fumehood.exec

deny contains {"rule": "test.id", "message": "id is not for pods", "suggestion": "use another"} if regex.match("(^|/)id$", input.argv[0])

deny contains {"rule": "test.copy", "message": "it is a copy of id", "suggestion": "use another"} if endswith(input.path, "/id")
`

const noDate = `package fumehood.command

deny contains {"rule": "test.date", "message": "there is no time", "suggestion": "use another"} if input.command.tool == "date"
`

// An operator is the configuration of a node.
type operator struct {
	t    testing.TB
	dir  string
	key  string
	file string
}

func newOperator(t testing.TB) *operator {
	o := &operator{t: t, dir: t.TempDir()}
	o.key, o.file = filepath.Join(o.dir, "key.pem"), filepath.Join(o.dir, "node.toml")
	public, err := key.GenerateBundle(o.key)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(o.dir, "public.pem"), []byte(public), 0o600))
	check(t, os.Mkdir(filepath.Join(o.dir, "policies"), 0o700))
	return o
}

// bundle puts a bundle where the node finds it, and returns its digest.
func (o *operator) bundle(rules ...string) string {
	o.t.Helper()
	recipe := source.Recipe{}
	for i, text := range rules {
		recipe.Files = append(recipe.Files, policy.File{Name: fmt.Sprintf("p%d.rego", i), Content: []byte(text)})
	}
	data, err := source.Build(recipe)
	check(o.t, err)
	data, err = source.Signing{Key: o.key, KeyID: source.DefaultKeyID}.Sign("test", data)
	check(o.t, err)
	digest := source.Digest(data)
	check(o.t, os.WriteFile(o.place(digest), data, 0o600))
	return digest
}

func (o *operator) place(digest string) string {
	return filepath.Join(o.dir, "policies", strings.TrimPrefix(digest, "sha256:")+".tar.gz")
}

// configure writes the node's file.
func (o *operator) configure(n string, lines ...string) {
	o.t.Helper()
	text := fmt.Sprintf("policies = %q\nkeys = [%q]\nlogs = %q\nstate = %q\n", o.dir+"/policies", o.dir+"/public.pem", o.dir+"/logs", o.dir+"/run")
	if n != "" {
		text += fmt.Sprintf("runsc = %q\n", n)
	}
	check(o.t, os.WriteFile(o.file, []byte(text+strings.Join(lines, "\n")+"\n"), 0o600))
}

// verify checks the last log that was written: it is sealed, and says what.
func (o *operator) verify(what string) {
	o.t.Helper()
	files := o.logs()
	at := func(name string) time.Time {
		info, err := os.Stat(name)
		check(o.t, err)
		return info.ModTime()
	}
	slices.SortFunc(files, func(a, b string) int { return at(a).Compare(at(b)) })
	if text := o.sealed(files[len(files)-1]); !strings.Contains(text, what) {
		o.t.Errorf("%s does not have %q", files[len(files)-1], what)
	}
}

func (o *operator) logs() []string {
	o.t.Helper()
	files, err := filepath.Glob(o.dir + "/logs/*/*.jsonl")
	check(o.t, err)
	if len(files) == 0 {
		o.t.Fatal("there is no log")
	}
	return files
}

// sealed returns a log, which must be sealed.
func (o *operator) sealed(file string) string {
	o.t.Helper()
	data, err := os.ReadFile(file)
	check(o.t, err)
	if found, err := audit.Verify(bytes.NewReader(data), audit.Trust{}); err != nil || found.State != audit.Sealed {
		o.t.Errorf("%s: %+v, %v", file, found, err)
	}
	return string(data)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// forever is a container that starts a program each second.
var forever = nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", "while sleep 1; do env echo on; done"}}

// sessions writes the certificates of a node, and returns the lines of its configuration.
func (o *operator) sessions(nodes, clients certtest.Authority) string {
	o.t.Helper()
	nodes.Write(o.t, o.dir, remote.ServerName("node"), clients)
	return fmt.Sprintf("[sessions]\ncertificate = %q\nkey = %q\nclients = %q\nwork = %q\ndisk = 200000000\n", o.dir+"/tls.crt", o.dir+"/tls.key", o.dir+"/ca.crt", o.dir+"/work")
}

// conformanceRules are the texts of the suite's policy.
func conformanceRules() (texts []string) {
	for _, text := range conformance.RequiredPolicy().Files {
		texts = append(texts, string(text))
	}
	return texts
}
