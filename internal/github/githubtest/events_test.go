// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"
	"github.com/santhosh-tekuri/jsonschema/v6"

	githubdata "github.com/fumehood/fumehood/testdata/github"
)

// webhooks compiles one definition of GitHub's webhook schema.
func webhooks(t *testing.T) func(definition string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(githubdata.Webhooks))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	// The library's own check refuses the templates that GitHub sends.
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }})
	c.AssertFormat()
	if err := c.AddResource("webhooks.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(definition string) *jsonschema.Schema {
		schema, err := c.Compile("webhooks.json#/definitions/" + definition)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
}

// definition returns the name of the schema for a payload: "issue_comment$created"
// for "issue_comment.created.pr".
func definition(payload string) (event, name string) {
	event, rest, _ := strings.Cut(payload, ".")
	action, _, _ := strings.Cut(rest, ".")
	if event == "workflow_dispatch" {
		action = "event"
	}
	return event, event + "$" + action
}

// broken are payloads that GitHub sends and its own schema refuses.
var broken = map[string]string{
	"workflow_run.completed.pr.deletedfork": "head_repository is null once the fork was deleted",
}

func TestEventsAreValid(t *testing.T) {
	compile := webhooks(t)
	if n := len(githubdata.Events()); n < 30 {
		t.Fatalf("found %d payloads", n)
	}
	for _, payload := range githubdata.Events() {
		t.Run(payload, func(t *testing.T) {
			event, name := definition(payload)
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(githubdata.Event(payload)))
			if err != nil {
				t.Fatal(err)
			}
			err = compile(name).Validate(value)
			if reason := broken[payload]; (err != nil) != (reason != "") {
				t.Errorf("got %v, known: %q", err, reason)
			}
			if _, err := github.ParseWebHook(event, githubdata.Event(payload)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSchemaRefuses shows that the cut schema still refuses invalid payloads.
func TestSchemaRefuses(t *testing.T) {
	compile := webhooks(t)
	for name, change := range map[string]func(v map[string]any){
		"no comment":      func(v map[string]any) { delete(v, "comment") },
		"another action":  func(v map[string]any) { v["action"] = "deleted" },
		"a textual id":    func(v map[string]any) { v["comment"].(map[string]any)["id"] = "1" },
		"a strange state": func(v map[string]any) { v["issue"].(map[string]any)["state"] = "ajar" },
	} {
		t.Run(name, func(t *testing.T) {
			var v map[string]any
			if err := json.Unmarshal(githubdata.Event("issue_comment.created.pr"), &v); err != nil {
				t.Fatal(err)
			}
			change(v)
			if compile("issue_comment$created").Validate(v) == nil {
				t.Error("is valid")
			}
		})
	}
}

// TestEventsAgree checks that the payloads of one pull request are consistent, so
// that tests may mix them.
func TestEventsAgree(t *testing.T) {
	const head = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	for _, payload := range githubdata.Events() {
		var v struct {
			Repository  struct{ ID int64 }
			PullRequest *struct {
				Number int
				Head   struct{ SHA string }
			} `json:"pull_request"`
			Issue *struct {
				Number      int
				PullRequest *struct{ URL string } `json:"pull_request"`
			}
			Run *struct {
				HeadSHA string `json:"head_sha"`
				Event   string
			} `json:"workflow_run"`
		}
		if err := json.Unmarshal(githubdata.Event(payload), &v); err != nil {
			t.Fatal(err)
		}
		if v.PullRequest != nil && (v.PullRequest.Number != 2 || v.PullRequest.Head.SHA != head) {
			t.Errorf("%s: speaks of %+v", payload, *v.PullRequest)
		}
		onPull := strings.Contains(payload, ".pr")
		if v.Issue != nil && onPull != (v.Issue.PullRequest != nil && v.Issue.Number == 2) {
			t.Errorf("%s: speaks of %+v", payload, *v.Issue)
		}
		if v.Run != nil && onPull && (v.Run.HeadSHA != head || v.Run.Event != "pull_request" || v.Repository.ID != 186853002) {
			t.Errorf("%s: speaks of %+v", payload, *v.Run)
		}
	}
}
