// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const toolName = `([A-Za-z0-9][A-Za-z0-9._+-]{0,63})`

// notFound are the lines in which shells, env, make and package runners say that there is
// no such program. A name with a directory is a file of the pull request.
var notFound = []*pattern.Pattern{
	pattern.New(`^\S+: (?:line )?[0-9]+: ` + toolName + `: (?:command )?not found$`),
	pattern.New(`^\S+: ` + toolName + `: command not found$`),
	pattern.New(`^(?:/usr/bin/)?env: [‘'"]?` + toolName + `[’'"]?: No such file or directory$`),
	pattern.New(`^make(?:\[[0-9]+\])?: ` + toolName + `: No such file or directory$`),
	pattern.New(`^(?:bundler: )?command not found: ` + toolName + `$`),
}

var noSubcommand = pattern.New("^error: no such command: `([a-z][a-z0-9-]{0,50})`$")

var makeFailed = pattern.New(`^make(?:\[[0-9]+\])?: \*\*\* \[.*\] Error ([0-9]+)$`)

// onlyMake reports whether make failed, and only because it did not find programs. The
// makes above one that failed end with 2.
func (c *command) onlyMake() bool {
	found := false
	for _, line := range c.lines {
		m := makeFailed.FindStringSubmatch(line)
		if m != nil && m[1] != "127" && !(m[1] == "2" && found) {
			return false
		}
		found = found || m != nil
	}
	return found && c.hasStarted("make")
}

var (
	nodeRunners = []string{"npm", "npx", "pnpm", "yarn", "corepack", "bun"}
	rubyRunners = []string{"bundle", "bundler"}
	// pythonTools are programs that a project installs with its dependencies.
	pythonTools = []string{"pytest", "py.test", "tox", "nox", "mypy", "ruff", "black", "flake8", "pylint", "isort",
		"coverage", "pyright", "bandit", "sphinx-build"}
)

// missingProgram finds that a program is not installed.
func missingProgram(c *command) *proposal.Cause {
	if line, m := c.findLine(noSubcommand); m != nil && !c.other && c.hasStarted("cargo") &&
		c.isNeverStarted("cargo-"+m[1]) {
		return withoutTool("cargo-"+m[1], line)
	}
	line, name := c.lastNotFound()
	if name == "" || c.other || !c.isNeverStarted(name) {
		return nil
	}
	runner := c.hasStarted(nodeRunners...) && !c.isInText(name)
	byPnpm := runner && c.hasStarted("pnpm") && c.hasLineWith("ELIFECYCLE") // its exit code is 1
	if c.Result.ExitCode != 127 && !byPnpm && !c.onlyMake() {
		return nil
	}
	switch {
	case runner:
		return packagesCause("npm", name, line)
	case c.hasStarted(rubyRunners...) && !c.isInText(name):
		return packagesCause("rubygems", name, line)
	case slices.Contains(pythonTools, name):
		return packagesCause("pypi", name, line)
	}
	if cause := absentToolchain(c, name, line); cause != nil {
		return cause
	}
	return withoutTool(name, line)
}

func withoutTool(name, line string) *proposal.Cause {
	return &proposal.Cause{Kind: causeTool, Reason: noTool, Subject: name, Evidence: line,
		Advice: "Install it on the runner, in a directory of `PATH` below `/usr`, or as a dependency of the project."}
}

// lastNotFound returns the last such line, which is the one that an exit code is about.
func (c *command) lastNotFound() (line, name string) {
	for _, l := range slices.Backward(c.lines) {
		for _, p := range notFound {
			if m := p.FindStringSubmatch(l); m != nil {
				return l, m[1]
			}
		}
	}
	return "", ""
}

// A version is a message that a tool is too old for the project, or not there in the
// version that the project names.
type version struct {
	line     *pattern.Pattern // its group is the version
	tool     string           // "go", followed by the version in the Cause's Subject
	programs []string         // that print it
	advice   string
}

const runnerAdvice = "Install that version on the runner, in a step before fumehood"

var versions = []version{
	{pattern.New(`^go: .*\bgo\.(?:mod|work)\b.* requires go >= ([0-9][0-9a-z.]*) `), "go", []string{"go"}, runnerAdvice + ": `actions/setup-go`."},
	{pattern.New(`^go: \S+@\S+ requires go >= ([0-9][0-9a-z.]*) `), "go", []string{"go"}, runnerAdvice + ": `actions/setup-go`."},
	{pattern.New(`^go: download go([0-9][0-9a-z.]*)(?: for \S+)?: toolchain not available`), "go", []string{"go"}, runnerAdvice + ": `actions/setup-go`."},
	{pattern.New(`^go: download go([0-9][0-9a-z.]*)\b.*GOPROXY=off`), "go", []string{"go"}, runnerAdvice + ": `actions/setup-go`."},
	{pattern.New(`^\s+\S+@\S+ requires rustc ([0-9][0-9.]*)$`), "rustc", []string{"cargo"}, runnerAdvice + ": `rustup toolchain install`."},
	{pattern.New(`^error: toolchain '([0-9a-z][0-9a-z._-]*)' is not installed`), "rust", []string{"cargo", "rustc", "rustup"}, runnerAdvice + ": `rustup toolchain install`."},
	{pattern.New(`^info: syncing channel updates for '?([0-9a-z][0-9a-z._-]*)'?$`), "rust", []string{"cargo", "rustc", "rustup"}, runnerAdvice + ": `rustup toolchain install`."},
	{pattern.New("^pyenv: version [`']([0-9][0-9a-z.]*)' is not installed"), "python", []string{"bash", "pyenv", "python"}, runnerAdvice + ": `actions/setup-python`."},
	{pattern.New(`(?:error: release version|(?:invalid|error: invalid) target release:) ([0-9.]+)(?: not supported)?`), "java", []string{"java", "javac", "mvn", "gradle"}, runnerAdvice + ": `actions/setup-java`."},
	{pattern.New(`^npm (?:ERR!|error) notsup Required: \{"node":"([^"]{1,40})"`), "node", []string{"npm", "node"}, runnerAdvice + ": `actions/setup-node`."},
}

// missingVersion finds that a toolchain is too old, unless it is known that the base of the pull request
// does not ask for a newer one: then the change does, and cannot excuse its failures by that.
func missingVersion(c *command) *proposal.Cause {
	if !c.isReliable() {
		return nil
	}
	for _, v := range versions {
		if line, m := c.findLine(v.line); m != nil && c.hasStarted(v.programs...) {
			if v.askedByChange(c.unmet) != nil {
				return nil
			}
			return &proposal.Cause{Kind: causeTool, Reason: noVersion, Subject: v.tool + " " + m[1], Evidence: line,
				Advice: v.advice}
		}
	}
	return nil
}
