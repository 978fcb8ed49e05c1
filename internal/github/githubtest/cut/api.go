// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type obj = map[string]any

// cutAPI keeps the named operations and everything they refer to, without
// descriptions and examples: both are big, and neither validates anything.
func cutAPI(from, list, to string) error {
	var doc obj
	if err := readJSON(from, &doc); err != nil {
		return err
	}
	wanted, err := readList(list)
	if err != nil {
		return err
	}
	paths, found := pickOperations(doc["paths"].(obj), wanted)
	for _, id := range wanted {
		if !found[id] {
			return fmt.Errorf("cannot find operation %q", id)
		}
	}
	stripDescriptions(paths)
	components := collectReferenced(paths, func(ref string) (group, name string, value any) {
		group, name, _ = strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
		if group != "examples" {
			value = doc["components"].(obj)[group].(obj)[name]
		}
		return group, name, value
	})
	return writeJSON(to, obj{"openapi": doc["openapi"], "info": doc["info"], "servers": doc["servers"],
		"paths": paths, "components": components})
}

func pickOperations(all obj, wanted []string) (paths obj, found map[string]bool) {
	paths, found = obj{}, map[string]bool{}
	for path, item := range all {
		kept := obj{}
		for method, operation := range item.(obj) {
			o, ok := operation.(obj)
			if !ok {
				continue
			}
			id, _ := o["operationId"].(string)
			if !slices.Contains(wanted, id) {
				continue
			}
			found[id] = true
			for _, prose := range []string{"x-octokit", "x-github", "externalDocs", "description", "tags", "summary"} {
				delete(o, prose)
			}
			kept[method] = o
		}
		if len(kept) > 0 {
			paths[path] = kept
		}
	}
	return paths, found
}

// collectReferenced follows references from v until there is no new one, and returns their
// targets by group and name. A nil value is left out.
func collectReferenced(v any, resolve func(ref string) (group, name string, value any)) obj {
	collected, queue, seen := obj{}, []any{v}, map[string]bool{}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, ref := range listReferences(next) {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			group, name, value := resolve(ref)
			if value == nil {
				continue
			}
			stripDescriptions(value)
			if collected[group] == nil {
				collected[group] = obj{}
			}
			collected[group].(obj)[name] = value
			queue = append(queue, value)
		}
	}
	return collected
}

func listReferences(v any) []string {
	var list []string
	switch v := v.(type) {
	case obj:
		if ref, ok := v["$ref"].(string); ok {
			list = append(list, ref)
		}
		for _, child := range v {
			list = append(list, listReferences(child)...)
		}
	case []any:
		for _, child := range v {
			list = append(list, listReferences(child)...)
		}
	}
	return list
}

// stripDescriptions empties descriptions and drops examples. Under "properties" these words are
// names of fields and are kept.
func stripDescriptions(v any) {
	switch v := v.(type) {
	case obj:
		for name, child := range v {
			switch {
			case name == "properties":
				for _, property := range v[name].(obj) {
					stripDescriptions(property)
				}
				continue
			case name == "examples", name == "example", name == "x-github-breaking-changes":
				delete(v, name)
				continue
			case name == "description" && isString(child):
				v[name] = ""
			}
			stripDescriptions(child)
		}
	case []any:
		for _, child := range v {
			stripDescriptions(child)
		}
	}
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func readList(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read operations: %w", err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list, nil
}

func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read package: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot read %q: %w", file, err)
	}
	return nil
}

func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode %q: %w", file, err)
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
