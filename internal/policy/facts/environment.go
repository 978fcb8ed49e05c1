// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Environment contains the variables that a command may have, with each value that the
// proposal and its text give them.
type Environment map[string][]proposal.Word

// An EnvironmentTracker finds the variables of the commands of a text, in their order.
type EnvironmentTracker struct {
	now Environment // of what comes next
	all Environment // of what may run again, or is defined before it runs
	// launched are the assignments before the commands that run those which come next.
	launched []launched
}

type launched struct {
	depth   int // of the command, in launchers
	assigns []proposal.Assign
}

// TrackEnvironment begins before the first of the commands of p.
func TrackEnvironment(p proposal.Proposal, commands []proposal.Command) *EnvironmentTracker {
	e := &EnvironmentTracker{now: Environment{}, all: Environment{}}
	for name, value := range p.Env {
		e.now[name] = []proposal.Word{{Value: value, Static: true}}
	}
	e.all = maps.Clone(e.now)
	for _, c := range commands {
		if leaving[c.Program] || c.Function {
			e.all.addAssigns(c.Assigns)
		}
	}
	return e
}

// addAssigns adds assigns, and leaves the lists of other Environments as they are.
func (env Environment) addAssigns(assigns []proposal.Assign) {
	for _, a := range assigns {
		env[a.Name] = append(slices.Clip(env[a.Name]), a.Value)
	}
}

// leaving are the commands whose assignments later commands have, or may have.
var leaving = map[string]bool{"": true, "export": true, "declare": true, "typeset": true, "local": true,
	"readonly": true, "read": true}

// RecordCommand adds the variables that c leaves for later commands, and those that it gives to the commands
// that it runs: timeout, env, an inner shell. Exports are not tracked: a variable that the text sets
// counts.
func (e *EnvironmentTracker) RecordCommand(c proposal.Command) {
	switch {
	case leaving[c.Program]:
		e.now.addAssigns(c.Assigns)
	case c.Launches:
		e.launched = append(e.launched, launched{len(c.Via), c.Assigns})
	}
}

// EnvironmentOf is the environment that c may have.
func (e *EnvironmentTracker) EnvironmentOf(c proposal.Command) Environment {
	for len(e.launched) > 0 && e.launched[len(e.launched)-1].depth >= len(c.Via) {
		e.launched = e.launched[:len(e.launched)-1]
	}
	env := e.now
	if runsLater(c) {
		env = e.all
	}
	if len(e.launched) == 0 && len(c.Assigns) == 0 {
		return env
	}
	env = maps.Clone(env)
	for _, l := range e.launched {
		env.addAssigns(l.assigns)
	}
	env.addAssigns(c.Assigns)
	return env
}

// runsLater reports whether c may run after commands that come later in the text.
func runsLater(c proposal.Command) bool {
	return slices.Contains(c.Via, "trap") || slices.ContainsFunc(c.Inside, func(construct string) bool {
		name, _, _ := strings.Cut(construct, " ")
		return slices.Contains([]string{"function", "for", "while", "until", "select"}, name)
	})
}

// SetsHome reports whether HOME may be a directory with settings that are not the sandbox's own.
func (env Environment) SetsHome() bool {
	return slices.ContainsFunc(env["HOME"], func(w proposal.Word) bool { return !isNewDirectory(w) && !keepsHome(w) })
}

// keepsHome reports whether w is $HOME, as in env -i HOME="$HOME", or what that is when env starts.
func keepsHome(w proposal.Word) bool {
	return w.Static && w.Value == "/home/fumehood" ||
		!w.Static && w.Value == "" && (w.Head == "$HOME" || w.Head == "${HOME}") && w.Tail == ""
}

// isNewDirectory reports whether w is a directory that mktemp makes there, so that it is empty.
func isNewDirectory(w proposal.Word) bool {
	return !w.Static && w.Value == "" && w.Head == "$(mktemp -d)" && w.Tail == ""
}

// SetsLibraries reports whether the dynamic loader would look for libraries in other directories.
func (env Environment) SetsLibraries() bool { return len(env["LD_LIBRARY_PATH"]) > 0 }

// SearchedPathDirs returns the directories that are in PATH before those of its own list. What is found only
// after those is no installed tool.
func (env Environment) SearchedPathDirs() []string {
	dirs := []string{}
	for _, value := range env["PATH"] {
		for _, dir := range strings.Split(value.Value, ":") {
			if dir == "$PATH" && !value.Static {
				break
			}
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// searchEntry is one directory of a list: it is literal, or in the working directory, or it is the
// list that a variable had.
const searchEntry = `"?(?:\$(?:PWD|\{PWD\}|\(pwd\))"?(?:/[\w.@+/-]*)?|[\w./@+-]*|\$(?:PATH|LD_LIBRARY_PATH|\{PATH\}|\{LD_LIBRARY_PATH\}))"?`

var (
	searchAssigned = pattern.New(`(?:^|[\s;&|(])(PATH|LD_LIBRARY_PATH)=(` + searchEntry + `(?::` + searchEntry +
		`)*(?:\$\{(?:PATH:\+:\$\{?PATH|LD_LIBRARY_PATH:\+:\$\{?LD_LIBRARY_PATH)\}?\}"?)?)(?:[\s;&|)]|$)`)
	searchNamed = pattern.New(`(?:^|[^\w$])(PATH|LD_LIBRARY_PATH)\+?=`)
	searchPlain = strings.NewReplacer(`"`, "", "${PWD}", "$PWD", "$(pwd)", "$PWD", "${PATH:+:$PATH}", ":$PATH",
		"${PATH:+:${PATH}}", ":$PATH", "${PATH}", "$PATH",
		"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", ":$LD_LIBRARY_PATH", "${LD_LIBRARY_PATH:+:${LD_LIBRARY_PATH}}", ":$LD_LIBRARY_PATH",
		"${LD_LIBRARY_PATH}", "$LD_LIBRARY_PATH")
)

// ShowSearch returns c, a command of text that may run in cwds, with the values that searchPath finds
// as those of its variables PATH and LD_LIBRARY_PATH, which stay unknown until a program starts. A
// relative directory must be in the workspace.
func ShowSearch(c proposal.Command, text string, cwds []string, workspace Workspace) proposal.Command {
	assigns := slices.Clone(c.Assigns)
	for i, as := range assigns {
		if as.Name != "PATH" && as.Name != "LD_LIBRARY_PATH" || as.Value.Static {
			continue
		}
		found := searchPath(text, c.Span, as.Name)
		if slices.ContainsFunc(strings.Split(found, ":"), func(dir string) bool {
			if rest, ok := strings.CutPrefix(dir, "$PWD"); ok {
				dir = "." + rest
			}
			return dir != "" && !strings.ContainsAny(dir[:1], "/$") &&
				ResolvePlace(dir, true, cwds, workspace) != "workspace"
		}) {
			found = ""
		}
		assigns[i].Value.Value = found
	}
	c.Assigns = assigns
	return c
}

// searchPath returns the list of directories that the text at span assigns to the variable name,
// PATH or LD_LIBRARY_PATH, if it assigns it once and each directory is literal, in $PWD, or the list
// that a variable had. The value of a word does not show it, because it has expansions. It is "" for
// everything else. The value that a program gets is known only when it starts.
func searchPath(text string, span proposal.Span, name string) string {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	assigned := 0
	for _, found := range searchNamed.FindAllStringSubmatch(text, -1) {
		if found[1] == name {
			assigned++
		}
	}
	for _, found := range searchAssigned.FindAllStringSubmatch(text, -1) {
		if found[1] == name && assigned == 1 && strings.Count(found[2], `"`)%2 == 0 {
			return searchPlain.Replace(found[2])
		}
	}
	return ""
}

// holders are the variables from which tools read options before those of their words.
var holders = map[string]string{
	"go": "GOFLAGS", "make": "MAKEFLAGS", "gmake": "MAKEFLAGS", "pytest": "PYTEST_ADDOPTS", "py.test": "PYTEST_ADDOPTS", "mvn": "MAVEN_ARGS", "node": "NODE_OPTIONS",
}

// AddVariableOptions adds the options for the tool of r that a variable of env contains. A value that is
// known only at run time is read when the program starts.
func (r *reading) AddVariableOptions(gs Grammars, env Environment) {
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
