// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// firstLineage returns the lineage of the command's first process.
func (c *Command) firstLineage() uint32 {
	switch {
	case !c.Program:
		return wire.LineageFirst
	case c.Free:
		return wire.LineageProgram
	}
	return wire.LineageTool
}

// byName returns the variables of an environment. If a name occurs twice, the first
// value is used, as most programs do.
func byName(env []string) map[string]string {
	vars := make(map[string]string, len(env))
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := vars[name]; !twice {
			vars[name] = value
		}
	}
	return vars
}

// Every shell sets these by itself, and they do not influence programs.
var shellsOwn = map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true}

// changedVariables lists the differences from the environment that the command was started
// with. A variable that occurs twice is listed with each value, because programs
// disagree about which one they use. One that is missing is listed as empty if the program, at path,
// needs it: without PATH, a program may look for others elsewhere, and git reads the configuration
// that guards it from GIT_CONFIG_COUNT and the like. A program may do without any other variable that
// the sandbox sets: its home directory is then that of the user.
func (c *Command) changedVariables(vars []string, program string) []proposal.Assign {
	var list []proposal.Assign
	differs := func(name, value string) {
		list = append(list, proposal.Assign{Name: toValidUTF8(name),
			Value: proposal.Word{Value: points.EscapeBytes(value), Static: true}, Exported: true})
	}
	seen := make(map[string]bool, len(vars))
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		if was, known := c.base[name]; !shellsOwn[name] && (!known || was != value) {
			differs(name, value)
		}
		seen[name] = true
	}
	isGit := wire.IsGit(program)
	for _, name := range slices.Sorted(maps.Keys(c.base)) {
		if !seen[name] && (name == "PATH" || isGit && strings.HasPrefix(name, "GIT_CONFIG_")) {
			differs(name, "")
		}
	}
	return list
}

// recordedWords returns the words of argv that are recorded, and whether any were cut or
// left out.
func recordedWords(argv []string) (words []string, short bool) {
	words, room := make([]string, 0, min(len(argv), wire.MaxWords)), wire.MaxArgv
	for i, w := range argv {
		if i >= wire.MaxWords || room == 0 {
			return words, true
		}
		kept := wire.Truncate(w, min(wire.MaxWord, room))
		words, room, short = append(words, toValidUTF8(kept)), room-len(kept), short || len(kept) < len(w)
	}
	return words, short
}

func namesOf(changed []proposal.Assign) []string {
	var names []string
	for _, c := range changed {
		names = append(names, wire.Truncate(c.Name, wire.MaxName))
	}
	return names
}
