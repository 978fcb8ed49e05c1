// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// cutWebhooks keeps the definitions of the events that have payloads, and
// everything they refer to.
func cutWebhooks(from, folder, to string) error {
	var doc obj
	if err := readJSON(from, &doc); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("cannot find payloads in %q", folder)
	}
	definitions := doc["definitions"].(obj)
	roots := []any{}
	for _, file := range files {
		name := schemaName(filepath.Base(file))
		if definitions[name] == nil {
			return fmt.Errorf("cannot find definition %q for %q", name, file)
		}
		roots = append(roots, obj{"$ref": "#/definitions/" + name})
	}
	kept := collectReferenced(roots, func(ref string) (group, name string, value any) {
		name = strings.TrimPrefix(ref, "#/definitions/")
		return "definitions", name, definitions[name]
	})
	return writeJSON(to, obj{"$schema": doc["$schema"], "definitions": kept["definitions"]})
}

// schemaName returns the name of the schema for the payload in a file:
// "issue_comment$created" for issue_comment.created.pr.json.
func schemaName(file string) string {
	event, rest, _ := strings.Cut(strings.TrimSuffix(file, ".json"), ".")
	action, _, _ := strings.Cut(rest, ".")
	if event == "workflow_dispatch" {
		action = "event" // it has no actions
	}
	return event + "$" + action
}
