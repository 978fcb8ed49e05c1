// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var pinned = regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)

// THREATS 24, 31: no expression is expanded into a shell script, every action is
// pinned to a commit, and no job has a permission that it does not name.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflow found: %v", err)
	}
	actions, err := filepath.Glob("../../action.y*ml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, actions...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := yaml.Unmarshal(data, &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if permissions, ok := document["permissions"].(map[string]any); document["jobs"] != nil && (!ok || len(permissions) > 0) {
			t.Errorf("%s: top-level permissions are not {}", file)
		}
		walkYAML(document, func(key string, value any) { checkStep(t, file, key, value) })
	}
}

// An actionFile is action.yml, as far as it is looked at.
type actionFile struct {
	Inputs  map[string]struct{ Description, Default string }
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, If, Shell, Uses, Run string
			Env                      map[string]string
			With                     map[string]string
		}
	}
}

func readAction(t *testing.T) actionFile {
	t.Helper()
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a actionFile
	if err := yaml.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func checkStep(t *testing.T, file, key string, value any) {
	t.Helper()
	text, isText := value.(string)
	switch {
	case key == "run" && isText && strings.Contains(text, "${{"):
		t.Errorf("%s: an expression is expanded into a script: %s", file, text)
	case key == "uses" && isText && !pinned.MatchString(text) && !strings.HasPrefix(text, "./"):
		t.Errorf("%s: %s is not pinned to a commit", file, text)
	case key == "uses" && strings.HasPrefix(text, "actions/checkout@"):
		data, _ := os.ReadFile(file)
		if !strings.Contains(string(data), "persist-credentials: false") {
			t.Errorf("%s: the checkout leaves its credential behind", file)
		}
	}
}

func walkYAML(value any, visit func(string, any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			visit(key, child)
			walkYAML(child, visit)
		}
	case []any:
		for _, child := range v {
			walkYAML(child, visit)
		}
	}
}
