// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"os"
	"strings"
	"testing"

	githubdata "github.com/fumehood/fumehood/testdata/github"
)

// allowed is IsAllowed in a job that this event started.
func allowed(event, ref string, payload []byte, err error) bool {
	env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": event, "GITHUB_REF": ref}
	return IsAllowed(func(name string) string { return env[name] }, func(string) ([]byte, error) { return payload, err })
}

// THREATS 67, 69: no event keeps anything except for a push to the default branch, whatever
// GITHUB_REF is: several events have the default branch's.
func TestAllowed(t *testing.T) {
	for _, name := range githubdata.Events() {
		event, _, _ := strings.Cut(name, ".")
		for _, ref := range []string{"refs/heads/master", "refs/heads/main", "refs/pull/2/merge", "master", ""} {
			if allowed(event, ref, githubdata.Event(name), nil) {
				t.Errorf("%s with %q may keep", name, ref)
			}
		}
	}
	push := []byte(`{"ref":"refs/heads/master","repository":{"default_branch":"master"}}`)
	if !allowed("push", "refs/heads/master", push, nil) {
		t.Error("a push to the default branch may not keep")
	}
	for _, ref := range []string{"refs/heads/other", "refs/tags/master", "refs/heads/", "refs/heads/master/x", ""} {
		if allowed("push", ref, push, nil) {
			t.Errorf("a push to %q may keep", ref)
		}
	}
	for _, payload := range []string{"", "{", "{}", "null", `{"repository":{"default_branch":""}}`} {
		if allowed("push", "refs/heads/", []byte(payload), nil) || allowed("push", "refs/heads/master", []byte(payload), nil) {
			t.Errorf("the event %q may keep", payload)
		}
	}
	if allowed("push", "refs/heads/master", push, os.ErrNotExist) {
		t.Error("an event that cannot be read may keep")
	}
	if !IsAllowed(func(string) string { return "" }, os.ReadFile) {
		t.Error("outside of a job nothing may be kept")
	}
}

// A machine is a person's own unless a variable of CI says otherwise.
func TestOwnMachine(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{{"", "", true}, {"CI", "true", false}, {"CI", "1", false}, {"CI", "false", true}, {"GITHUB_ACTIONS", "true", false}} {
		if got := IsOwnMachine(func(name string) string { return map[string]string{c.name: c.value}[name] }); got != c.want {
			t.Errorf("%s=%s: %v", c.name, c.value, got)
		}
	}
}
