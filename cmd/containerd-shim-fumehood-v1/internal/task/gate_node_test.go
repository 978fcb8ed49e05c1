// SPDX-License-Identifier: Apache-2.0

//go:build node

package task_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/node"
	"github.com/fumehood/fumehood/cmd/containerd-shim-fumehood-v1/internal/nodetest"
	"github.com/fumehood/fumehood/pkg/key"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/source"
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
	t    *testing.T
	dir  string
	key  string
	file string
	more string // lines of the file
}

func newOperator(t *testing.T) *operator {
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
	text := fmt.Sprintf("policies = %q\nkeys = [%q]\nlogs = %q\nstate = %q\nrunsc = %q\n", o.dir+"/policies", o.dir+"/public.pem", o.dir+"/logs", o.dir+"/run", n)
	check(o.t, os.WriteFile(o.file, []byte(text+strings.Join(lines, "\n")+"\n"), 0o600))
}

// logs returns all that is in the pods' logs.
func (o *operator) logs() (text string) {
	o.t.Helper()
	files, err := filepath.Glob(o.dir + "/logs/*/*.jsonl")
	check(o.t, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		check(o.t, err)
		text += string(data)
	}
	return text
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestGate(t *testing.T) {
	o := newOperator(t)
	n := nodetest.Start(t, nodetest.Options{Env: []string{node.Variable + "=" + o.file}})
	_, err := n.RunPod(nodetest.Fumehood, nil)
	wantError(t, err, "node.config")
	digest := o.bundle(noID, noDate)
	o.configure(n.Runsc.Path)
	_, err = n.RunPod(nodetest.Fumehood, nil)
	wantError(t, err, "pod.policy")
	o.configure(n.Runsc.Path, "default = \""+digest+"\"")
	p, err := n.RunPod(nodetest.Fumehood, nil)
	check(t, err)
	for _, name := range []string{"web", "side"} {
		c, err := p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/sh", "-c", "while sleep 1; do echo on; done"}})
		check(t, err)
		r, err := c.Exec("/bin/echo", "hello", name)
		check(t, err)
		if r.Stdout != "hello "+name+"\n" || r.Code != 0 {
			t.Errorf("%+v", r)
		}
		_, err = c.Exec("/bin/date")
		wantError(t, err, "there is no time")
		_, err = c.Exec("/bin/id")
		wantError(t, err, "id is not for pods")
		r, err = c.Exec("/bin/sh", "-c", "env -i /bin/id")
		check(t, err)
		if r.Code != 126 {
			t.Errorf("%+v", r)
		}
	}
	_, err = p.Container(nodetest.ContainerOptions{ReadOnly: true, Command: []string{"/bin/date"}})
	wantError(t, err, "there is no time")
	check(t, p.StopAndRemove())
	if log := o.logs(); !strings.Contains(log, `"kind":"end"`) || !strings.Contains(log, "sealed") {
		t.Errorf("the log is not sealed")
	}
	if left := p.Left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
