// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Environment holds the variables that a command may have, with each value that the
// proposal and its text give them.
type Environment map[string][]proposal.Word

// EnvironmentOf is what p itself sets.
func EnvironmentOf(p proposal.Proposal) Environment {
	env := Environment{}
	for name, value := range p.Env {
		env[name] = []proposal.Word{{Value: value, Static: true}}
	}
	return env
}

// leaving are the commands whose assignments later commands have, or may have: what env
// starts stands behind it.
var leaving = map[string]bool{"": true, "env": true, "export": true, "declare": true, "typeset": true, "local": true, "readonly": true, "read": true}

// After adds what c leaves for later commands. Whether a variable is exported by then is
// not followed: one that is set in the text counts.
func (env Environment) After(c proposal.Command) {
	if !leaving[c.Program] {
		return // they are its alone
	}
	for _, a := range c.Assigns {
		env[a.Name] = append(env[a.Name], a.Value)
	}
}

// During is env with what c alone is given.
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

// holders are the variables from which tools read options before those of their words.
var holders = map[string]string{
	"go": "GOFLAGS", "make": "MAKEFLAGS", "gmake": "MAKEFLAGS", "pytest": "PYTEST_ADDOPTS", "py.test": "PYTEST_ADDOPTS", "mvn": "MAVEN_ARGS", "node": "NODE_OPTIONS",
}

// Hold adds the options that a variable of env holds for the tool of r. A value that only
// run time knows is read when the program starts.
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
