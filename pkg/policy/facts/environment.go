// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Environment contains the variables that a command may have, with each value that the
// proposal and its text give them.
type Environment map[string][]proposal.Word

// EnvironmentOf is the environment that p itself sets.
func EnvironmentOf(p proposal.Proposal) Environment {
	env := Environment{}
	for name, value := range p.Env {
		env[name] = []proposal.Word{{Value: value, Static: true}}
	}
	return env
}

// leaving are the commands whose assignments later commands have, or may have: the command
// that env starts comes after it.
var leaving = map[string]bool{"": true, "env": true, "export": true, "declare": true, "typeset": true, "local": true, "readonly": true, "read": true}

// After adds the variables that c leaves for later commands. Exports are not tracked: a
// variable that the text sets counts.
func (env Environment) After(c proposal.Command) {
	if !leaving[c.Program] {
		return // they apply only to c
	}
	for _, a := range c.Assigns {
		env[a.Name] = append(env[a.Name], a.Value)
	}
}

// During is env with the variables that only c has.
func (env Environment) During(c proposal.Command) Environment {
	if len(c.Assigns) == 0 {
		return env
	}
	own := maps.Clone(env)
	for _, a := range c.Assigns {
		own[a.Name] = append(own[a.Name][:len(own[a.Name]):len(own[a.Name])], a.Value)
	}
	return own
}

// SetsHome reports whether HOME is not the sandbox's own.
func (env Environment) SetsHome() bool { return len(env["HOME"]) > 0 }

var (
	pathAssigned  = pattern.New(`(?:^|[\s;&|(])PATH=(?:"?\$(?:PWD|\{PWD\}|\(pwd\))"?/((?:[\w-][\w.-]*/)*(?:node_modules/\.bin|\.?venv/bin|vendor/bin)):"?\$(?:PATH|\{PATH\})"?)(?:[\s;&|)]|$)`)
	pathAnyAssign = pattern.New(`(^|[^\w$])PATH\+?=`)
)

// InstalledPath returns "$PWD/DIRECTORY:$PATH" if the text at span sets PATH to that, and to
// nothing else, where DIRECTORY is one in which package managers install tools. The value of a
// word does not show it, because it begins with an expansion.
func InstalledPath(text string, span proposal.Span) string {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	found := pathAssigned.FindStringSubmatch(text)
	if found == nil || len(pathAnyAssign.FindAllString(text, 2)) != 1 {
		return ""
	}
	return "$PWD/" + found[1] + ":$PATH"
}

// holders are the variables from which tools read options before those of their words.
var holders = map[string]string{
	"go": "GOFLAGS", "make": "MAKEFLAGS", "gmake": "MAKEFLAGS", "pytest": "PYTEST_ADDOPTS", "py.test": "PYTEST_ADDOPTS", "mvn": "MAVEN_ARGS", "node": "NODE_OPTIONS",
}

// Hold adds the options for the tool of r that a variable of env contains. A value that is
// known only at run time is read when the program starts.
func (r *reading) Hold(gs Grammars, env Environment) {
	name := holders[r.Tool]
	for _, value := range env[name] {
		if !value.Static {
			continue
		}
		var words []proposal.Word
		if r.Sub != "" {
			words = append(words, proposal.Word{Value: r.Sub, Static: true})
		}
		for _, word := range strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(value.Value)) {
			words = append(words, proposal.Word{Value: word, Static: true})
		}
		for _, o := range gs.Read(program{r.Tool, "lookup"}, words).Options {
			o.From = name
			r.Options = append(r.Options, o)
		}
	}
}
