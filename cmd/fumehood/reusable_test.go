// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/golden"
)

// reusable are the workflows that other repositories call, by the example that each is made
// from, with its secret, and the input by which several calls in one workflow differ.
var reusable = []struct{ example, secret, differ string }{
	{example: "fumehood.yml", differ: `name: {type: string, default: "", description: "different in each of several calls in one workflow"}`},
	{example: "sharded.yml", differ: `artifact: {type: string, default: fumehood, description: "different in each of several calls in one workflow; none begins with another"}`},
	{example: "fumehood-report.yml"}, {example: "bot.yml"}, {example: "review-claude.yml", secret: "ANTHROPIC_API_KEY"}, {example: "review-codex.yml", secret: "OPENAI_API_KEY"},
}

// inputsOfCall are the inputs of a reusable workflow, which all of its steps with fumehood get.
const inputsOfCall = `      organization: {type: string, default: "", description: "see action.yml, as for all inputs"}
      policy-key: {type: string, default: ""}
      minimum-revision: {type: string, default: ""}
      policy: {type: string, default: ""}
      policy-branches: {type: string, default: ""}
      network: {type: string, default: none}
      setup: {type: string, default: configured}
`

// toolchains are the steps of jobs that run commands, one for each input with a version.
var toolchains = []struct{ input, step string }{
	{"node-version", "actions/setup-node@48b55a011bda9f5d6aeb4c2d9c7362e8dae4041e # v6.4.0\n        with: {node-version: \"${{ inputs.node-version }}\"}\n"},
	{"python-version", "actions/setup-python@a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0\n        with: {python-version: \"${{ inputs.python-version }}\"}\n"},
	{"go-version", "actions/setup-go@7a3fe6cf4cb3a834922a1244abfce67bcef6a0c5 # v6.2.0\n        with: {go-version: \"${{ inputs.go-version }}\", cache: false}\n"},
	{"java-version", "actions/setup-java@b6effb05e454b25005698d916606bdc6ffcbf961 # v5.7.0\n        with: {java-version: \"${{ inputs.java-version }}\", distribution: temurin}\n"},
}

// addToolchains adds the steps to the jobs of a workflow whose phase is run, and returns the
// inputs that they have; "" if there is no such job.
func addToolchains(jobs string) (with, inputs string) {
	steps := ""
	for _, t := range toolchains {
		steps += "      - if: inputs." + t.input + " != ''\n        uses: " + t.step
		inputs += "      " + t.input + ": {type: string, default: \"\", description: \"of the toolchain to install before the commands run\"}\n"
	}
	const start = "    steps:\n"
	parts := strings.Split(jobs, start)
	for i := 1; i < len(parts); i++ {
		if strings.Contains(parts[i], "          phase: run\n") {
			parts[i] = steps + parts[i]
		}
	}
	if with = strings.Join(parts, start); with == jobs {
		return jobs, ""
	}
	return with, inputs
}

// The reusable workflows are the examples, started by workflow_call and with inputs.
func TestReusableWorkflows(t *testing.T) {
	for _, r := range reusable {
		text := string(jobtest.ReadFile(t, "../../.github/examples/"+r.example))
		head, rest, ok := strings.Cut(text, "\non:\n")
		_, jobs, found := strings.Cut(rest, "\npermissions: {}\n")
		if !ok || !found {
			t.Fatalf("%s begins in another way", r.example)
		}
		comment, _, _ := strings.Cut(head, "\nname: ")
		on := "  workflow_call:\n    inputs:\n" + inputsOfCall
		if before, plan, has := strings.Cut(jobs, "          plan: |\n"); has {
			with := "          plan: ${{ inputs.plan }}\n"
			if strings.Contains(jobs, "phase: split\n") {
				on += "      plan: {type: string, required: true}\n"
			} else {
				on += `      plan: {type: string, default: "", description: "or commands in the input run"}` + "\n" +
					`      run: {type: string, default: ""}` + "\n"
				with += "          run: ${{ inputs.run }}\n"
			}
			lines := strings.SplitAfter(plan, "\n")
			end := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "            ") })
			jobs = before + with + strings.Join(lines[end:], "")
		}
		if before, after, has := strings.Cut(jobs, "          parts: \"4\"\n"); has {
			on += "      parts: {type: string, default: \"4\"}\n"
			jobs = before + "          parts: ${{ inputs.parts }}\n" + after
		}
		if r.secret != "" {
			on += fmt.Sprintf("    secrets:\n      %s: {required: true}\n", r.secret)
		}
		with := ""
		for line := range strings.Lines(inputsOfCall + r.differ) {
			if name, _, has := strings.Cut(strings.TrimSpace(line), ":"); has {
				with += "          " + name + ": ${{ inputs." + name + " }}\n"
			}
		}
		if name, _, has := strings.Cut(r.differ, ":"); has {
			on += "      " + r.differ + "\n"
			jobs = strings.Replace(jobs, "group: fumehood-", "group: fumehood-${{ inputs."+name+" }}-", 1)
		}
		jobs, inputs := addToolchains(jobs)
		on = strings.Replace(on, inputsOfCall, inputsOfCall+inputs, 1)
		var b strings.Builder
		fmt.Fprintf(&b, "# Made from .github/examples/%s by the test TestReusableWorkflows, for other repositories to call: see\n# .github/examples/organization.yml.\n#\n%s\nname: call %s\non:\n%s\npermissions: {}\n", r.example, comment, strings.TrimSuffix(r.example, ".yml"), on)
		// A called workflow in the group of the one that calls it would cancel that.
		for line := range strings.Lines(strings.ReplaceAll(jobs, "group: fumehood-", "group: fumehood-call-")) {
			if b.WriteString(line); strings.HasPrefix(line, "          phase: ") {
				b.WriteString(with)
			}
		}
		file := "../../.github/workflows/call-" + r.example
		if *golden.Update {
			if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if string(jobtest.ReadFile(t, file)) != b.String() {
			t.Errorf("%s is out of date: go test ./cmd/fumehood -run TestReusable -update", file)
		}
	}
}
