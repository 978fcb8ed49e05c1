// SPDX-License-Identifier: Apache-2.0

// Package toolchain has the names of the toolchains whose versions repositories ask for, and the
// steps of workflows that install them.
package toolchain

import "strings"

// A Tool is a toolchain.
type Tool struct {
	Title     string   // for people: "Node"
	Toolchain string   // its name as a proposal.Toolchain
	Programs  []string // that need it, without versions
	Action    string   // that installs it in a workflow; "" for none
	Input     string   // the action's input for the version
	Inputs    string   // further inputs that it requires, in YAML's flow style
	Parts     int      // numbers of a version that the input gets: the newest release of these is installed
}

// Tools are the toolchains by their name in a proposal.Unmet.
var Tools = map[string]Tool{
	"go":     {"Go", "go", []string{"go"}, "actions/setup-go@v6", "go-version", "cache: false", 2},
	"java":   {"Java", "java", []string{"java", "javac", "mvn", "gradle"}, "actions/setup-java@v5", "java-version", "distribution: temurin", 1},
	"node":   {"Node", "node", []string{"node", "npm", "npx"}, "actions/setup-node@v6", "node-version", "", 1},
	"python": {"Python", "python3", []string{"python", "pip", "pytest"}, "actions/setup-python@v6", "python-version", "", 2},
	"ruby":   {"Ruby", "ruby", []string{"ruby", "bundle", "gem", "rake"}, "ruby/setup-ruby@v1", "ruby-version", "", 2},
	"rust":   {"Rust", "rustc", []string{"cargo", "rustc"}, "", "", "", 0},
}

// InstallStep returns the step of a workflow that installs a tool, in a release that is not older than
// least, which must be numbers and dots, in YAML's flow style; "" if no action does. It names the
// version, not a file: a workflow with fumehood needs no checkout.
func InstallStep(tool, least string) string {
	t := Tools[tool]
	if t.Action == "" || least == "" {
		return ""
	}
	parts := strings.Split(least, ".")
	inputs := t.Input + `: "` + strings.Join(parts[:min(len(parts), t.Parts)], ".") + `"`
	if t.Inputs != "" {
		inputs += ", " + t.Inputs
	}
	return "- {uses: " + t.Action + ", with: {" + inputs + "}}"
}
