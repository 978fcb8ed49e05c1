// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func same(t *testing.T, file, want string) {
	t.Helper()
	var got, wanted any
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("want, got (+):\n%s", diff)
	}
}

const api = `{"openapi":"3.0.3","info":{"title":"t"},"servers":[],"x-webhooks":{},
"paths":{
 "/a":{"get":{"operationId":"a/get","summary":"s","tags":["a"],"responses":{"200":{"description":"prose","content":{"application/json":{
   "schema":{"$ref":"#/components/schemas/a"},"examples":{"x":{"$ref":"#/components/examples/a"}}}}}}},
  "post":{"operationId":"a/post","responses":{}}},
 "/b":{"get":{"operationId":"b/get","responses":{}}}},
"components":{"schemas":{
  "a":{"type":"object","description":"prose","properties":{"description":{"type":"string","description":"prose"},"example":{"$ref":"#/components/schemas/b"}}},
  "b":{"type":"string","example":"x"},"c":{"type":"string"}},
 "examples":{"a":{"value":1}}}}`

func TestCutAPI(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "out.json")
	args := []string{"api", "-from", write(t, dir, "api.json", api), "-ops", write(t, dir, "ops.txt", "# comment\na/get\n\n"), "-to", to}
	if err := runCommand(args); err != nil {
		t.Fatal(err)
	}
	same(t, to, `{"openapi":"3.0.3","info":{"title":"t"},"servers":[],
"paths":{"/a":{"get":{"operationId":"a/get","responses":{"200":{"description":"","content":{"application/json":{"schema":{"$ref":"#/components/schemas/a"}}}}}}}},
"components":{"schemas":{
  "a":{"type":"object","description":"","properties":{"description":{"type":"string","description":""},"example":{"$ref":"#/components/schemas/b"}}},
  "b":{"type":"string"}}}}`)
}

func TestCutWebhooks(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events")
	if err := os.Mkdir(events, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, events, "a.created.more.json", "{}")
	write(t, events, "workflow_dispatch.json", "{}")
	schema := write(t, dir, "schema.json", `{"$schema":"draft","definitions":{
"a$created":{"properties":{"x":{"$ref":"#/definitions/x"}}},"a$deleted":{"type":"object"},"workflow_dispatch$event":{"type":"object"},"x":{"type":"string"}}}`)
	to := filepath.Join(dir, "out.json")
	if err := runCommand([]string{"webhooks", "-from", schema, "-events", events, "-to", to}); err != nil {
		t.Fatal(err)
	}
	same(t, to, `{"$schema":"draft","definitions":{
"a$created":{"properties":{"x":{"$ref":"#/definitions/x"}}},"workflow_dispatch$event":{"type":"object"},"x":{"type":"string"}}}`)
}

func TestDerive(t *testing.T) {
	p := payload{replace: []string{"old", "new"}, edits: []edit{{"a.b", 2}, {"a.c", nil}, {"gone", remove}}}
	got, err := p.deriveFrom([]byte(`{"a":{"b":1,"id":9007199254740993},"gone":1,"who":"codebytere of old"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n \"a\": {\n  \"b\": 2,\n  \"c\": null,\n  \"id\": 9007199254740993\n },\n \"who\": \"octocat of new\"\n}\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	description, index := write(t, dir, "api.json", api), write(t, dir, "index.json", `[{"name":"pull_request","examples":[]}]`)
	schema := write(t, dir, "schema.json", `{"definitions":{}}`)
	events := filepath.Join(dir, "events")
	if err := os.Mkdir(events, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, events, "a.created.json", "{}")
	tests := []struct {
		name, want string
		args       []string
	}{
		{"no command", "invalid command", nil},
		{"another command", `invalid command "prune"`, []string{"prune"}},
		{"an unknown operation", `cannot find operation "z/get"`, []string{"api", "-from", description, "-ops", write(t, dir, "ops.txt", "z/get")}},
		{"no package", "cannot read package", []string{"api", "-from", dir + "/none"}},
		{"no list", "cannot read operations", []string{"api", "-from", description, "-ops", dir + "/none"}},
		{"no definition", `cannot find definition "a$created"`, []string{"webhooks", "-from", schema, "-events", events}},
		{"no payloads", "cannot find payloads", []string{"webhooks", "-from", schema, "-events", dir + "/none"}},
		{"no example", `of "pull_request"`, []string{"events", "-from", index, "-to", dir}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := runCommand(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := (edit{"a.b.c", 1}).apply(obj{"a": obj{}}); err == nil {
		t.Error("an edit of nothing")
	}
}
