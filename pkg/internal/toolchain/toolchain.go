// SPDX-License-Identifier: Apache-2.0

// Package toolchain has the names of the toolchains whose versions repositories ask for.
package toolchain

import (
	"path"
	"slices"
	"strings"
)

// A Tool is a toolchain.
type Tool struct {
	Title     string   // for people: "Node"
	Toolchain string   // its name as a proposal.Toolchain
	Programs  []string // that need it, without versions
	Action    string   // that installs it in a workflow; "" for none
	FileInput string   // the action's input for the file with the version; "" if it finds that itself
	Inputs    string   // further inputs that it requires, in YAML's flow style
	Files     []string // that FileInput accepts
}

// Step returns the step of a workflow that installs the tool in the version that a file asks for,
// in YAML's flow style, or "" if no action does. file must be a path without characters that have a
// meaning in YAML.
func Step(tool, file string) string {
	t := Tools[tool]
	if t.Action == "" || t.FileInput != "" && !slices.Contains(t.Files, path.Base(file)) {
		return ""
	}
	var inputs []string
	if t.FileInput != "" {
		inputs = append(inputs, t.FileInput+": "+file)
	}
	if t.Inputs != "" {
		inputs = append(inputs, t.Inputs)
	}
	if len(inputs) == 0 {
		return "- {uses: " + t.Action + "}"
	}
	return "- {uses: " + t.Action + ", with: {" + strings.Join(inputs, ", ") + "}}"
}

// Tools are the toolchains by their name in a proposal.Unmet.
var Tools = map[string]Tool{
	"go": {"Go", "go", []string{"go"}, "actions/setup-go@v6", "go-version-file", "", []string{"go.mod", ".tool-versions"}},
	"java": {"Java", "java", []string{"java", "javac", "mvn", "gradle"}, "actions/setup-java@v5", "java-version-file", "distribution: temurin",
		[]string{".java-version", ".tool-versions"}},
	"node": {"Node", "node", []string{"node", "npm", "npx"}, "actions/setup-node@v6", "node-version-file", "",
		[]string{"package.json", ".nvmrc", ".node-version", ".tool-versions", "mise.toml"}},
	"python": {"Python", "python3", []string{"python", "pip", "pytest"}, "actions/setup-python@v6", "python-version-file", "",
		[]string{"pyproject.toml", ".python-version", ".tool-versions"}},
	"ruby": {"Ruby", "ruby", []string{"ruby", "bundle", "gem", "rake"}, "ruby/setup-ruby@v1", "", "", nil},
	"rust": {"Rust", "rustc", []string{"cargo", "rustc"}, "", "", "", nil},
}
