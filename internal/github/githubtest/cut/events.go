// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A payload is one of GitHub's examples, edited in a few places.
type payload struct {
	file    string
	event   string
	example int // index among the package's examples of the event
	replace []string
	edits   []edit
}

// An edit sets the value at a dotted path; [remove] deletes the field.
type edit struct {
	path  string
	value any
}

type removed struct{}

var remove = removed{}

// people replaces the accounts that happen to be in the examples by chosen ones.
var people = []string{
	"Matthias Fax", "Codertocat", "matfax", "Codertocat",
	"codebytere", "octocat", "2036040", "583231",
	"Electron Cation", "Octo App", "electron", "octo-org",
}

// hello moves octo-org/octo-repo's run into the repository of the other payloads.
var hello = []string{
	"octo-org/octo-repo", "Codertocat/Hello-World", "octo-repo", "Hello-World", "octo-org", "Codertocat", "300029405", "186853002",
	"3484a3fb816e0859fd6e1cea078d76385ff50625", head,
}

const (
	head = "ec26c3e57ca3a959ca5aad62de7213c562f8c821" // of pull request 2 in every payload
	plan = "/fumehood run\r\n\r\n```fumehood\r\n{\"schema\":\"fumehood.plan/v1\",\"proposer\":\"octocat\"," +
		"\"proposals\":[{\"id\":\"unit\",\"run\":\"go test ./...\"}]}\r\n```\r\n"
)

// deriveEvents writes every payload of the table.
func deriveEvents(from, to string) error {
	var index []struct {
		Name     string            `json:"name"`
		Examples []json.RawMessage `json:"examples"`
	}
	if err := readJSON(from, &index); err != nil {
		return err
	}
	examples := map[string][]json.RawMessage{}
	for _, event := range index {
		examples[event.Name] = event.Examples
	}
	for _, p := range payloads {
		if p.example >= len(examples[p.event]) {
			return fmt.Errorf("cannot find example %d of %q", p.example, p.event)
		}
		data, err := p.deriveFrom(examples[p.event][p.example])
		if err != nil {
			return fmt.Errorf("cannot derive %q: %w", p.file, err)
		}
		if err := os.WriteFile(filepath.Join(to, p.file+".json"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p payload) deriveFrom(example []byte) ([]byte, error) {
	text := strings.NewReplacer(append(append([]string{}, p.replace...), people...)...).Replace(string(example))
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v obj
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	for _, e := range p.edits {
		if err := e.apply(v); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(v)
	return []byte(b.String()), err
}

func (e edit) apply(v obj) error {
	names := strings.Split(e.path, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := v[name].(obj)
		if !ok {
			return fmt.Errorf("cannot find %q of %q", name, e.path)
		}
		v = next
	}
	last := names[len(names)-1]
	if e.value == remove {
		delete(v, last)
		return nil
	}
	v[last] = e.value
	return nil
}
