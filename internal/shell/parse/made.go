// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Texts build in a directory that mktemp makes, and run what they built: "$d/app". Which file that is, is decided when
// it starts; the text shows that it is a new one below /tmp.

var (
	madeDirectory = pattern.New(`^\$\(mktemp( -d| --directory)( -t [\w.-]*X{3,}| /tmp/[\w.-]*X{3,})?\)$`)
	// startDirectory is the workspace, or a directory of it, unless the text has changed the directory.
	startDirectory = pattern.New(`^(\$PWD|\$\{PWD\}|\$\(pwd\)|\$\(git rev-parse --show-toplevel\))$`)
	// madeTail is a path that names no program of the system if the variable before it is empty.
	madeTail        = pattern.New(`^(/[\w+-][\w.+-]*)+$`)
	insideDirectory = pattern.New(`^/(workspace|tmp)(/|$)`)
	systemTail      = pattern.New(`^/(etc|usr|home|root|proc|dev|var|bin|sbin|lib\w*|opt|sys|run|boot|srv|mnt|media|workspace)(/|$)`)
)

// recordMade notes that a variable holds a directory that mktemp made.
func (w *walker) recordMade(name string, value proposal.Word) {
	if madeDirectory.MatchString(value.Head) && value.Tail == "" {
		putInMap(&w.made, name, true)
	}
	if startDirectory.MatchString(value.Head) && value.Tail == "" {
		putInMap(&w.rooted, name, true)
	}
}

// madePath returns the path of a file in a directory that the text made, or in $TMPDIR, as if it were known, and the
// variable that holds the directory.
func (w *walker) madePath(word proposal.Word, s scope) (file, variable string, ok bool) {
	variable = strings.TrimPrefix(word.Head, "$")
	if word.Static || s.shell != 0 || w.posix || !madeTail.MatchString(word.Tail) || systemTail.MatchString(word.Tail) {
		return "", "", false
	}
	switch {
	case variable == "TMPDIR":
		return "/tmp" + word.Tail, variable, true
	case w.made[variable] && !shellOwn[variable]:
		return "/tmp/mktemp" + word.Tail, variable, true
	case w.rooted[variable] && !shellOwn[variable]:
		return "/workspace" + word.Tail, variable, true
	}
	return "", "", false
}

// knownFile returns a as a literal word if it names a file in a directory that the text made. It is refused as kind if
// the variable may hold another one.
func (w *walker) knownFile(a arg, kind unknownKind, s scope) arg {
	file, variable, ok := w.madePath(a.Word, s)
	if !ok {
		return a
	}
	w.addDoubt(kind, a.span, func() bool { return w.isMade(variable) })
	a.Word, a.split = proposal.Word{Value: file, Static: true}, false
	return a
}

// isMade reports whether variable holds nothing but a directory that mktemp made in the sandbox's own $TMPDIR, or is
// that, or holds the directory in which the text began. It is known after the whole text was walked.
func (w *walker) isMade(variable string) bool {
	own := variable == "TMPDIR" || w.sets[variable] == 1 && (w.made[variable] || w.staysInside())
	return own && w.sets["TMPDIR"] == 0 && w.sets["PATH"] == 0
}

// staysInside reports whether the text changes the directory only to what is below the workspace and /tmp, as far as
// policy follows it. cd alone leads home, and cd - to where the shell was before.
func (w *walker) staysInside() bool {
	return !slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		if c.Program != "cd" && c.Program != "pushd" {
			return false
		}
		named := false
		for _, a := range c.Args[1:] {
			inside := a.Static && (!strings.HasPrefix(a.Value, "/") || insideDirectory.MatchString(a.Value)) ||
				w.rooted[strings.TrimPrefix(a.Head, "$")] && (a.Tail == "" || madeTail.MatchString(a.Tail))
			if !inside || a.Value == "-" {
				return true
			}
			named = named || !strings.HasPrefix(a.Value, "-")
		}
		return !named
	})
}

// loopScript matches a script of the workspace, or a pattern of scripts, in a loop: for t in tests/*.sh.
var loopScript = pattern.New(`^(\./)?([\w-][\w.-]*/)*[\w*?-][\w.*?-]*\.(sh|bash)$`)

// scriptsIn returns the scripts and patterns in items; nil if there is anything else.
func scriptsIn(items []arg) (scripts []string) {
	for _, a := range items {
		name := a.Value
		if a.Glob && a.src != nil {
			name = a.src.Lit()
		} else if !a.Static {
			return nil
		}
		if a.split || !loopScript.MatchString(name) || name[0] == '-' {
			return nil
		}
		scripts = append(scripts, path.Clean(name))
	}
	return scripts
}

// followLoop reads bash "$t" in a loop over scripts that are written literally, and find's -exec bash {}. The kernel's
// gate decides each when it starts; here they must not be written by the text.
func (w *walker) followLoop(index int, args []arg, s scope) bool {
	if len(args) < 2 || args[1].Static || args[1].Tail != "" || s.shell != 0 || w.posix {
		return false
	}
	variable := strings.TrimPrefix(args[1].Head, "$")
	scripts := w.loops[variable]
	ofFind := w.found != nil && args[1].src == nil && args[1].Value == "" && !slices.Contains(s.via, "xargs")
	if ofFind {
		scripts = w.found
	}
	split := args[1].split && !ofFind // a name may have blanks
	if len(scripts) == 0 || split && slices.ContainsFunc(scripts, isPattern) {
		return false
	}
	w.addDoubt(unknownScriptFile, args[1].span, func() bool { return ofFind || w.sets[variable] == 1 })
	for _, name := range scripts {
		w.shellFile(arg{Word: proposal.Word{Value: name, Static: true}, span: args[1].span})
	}
	w.commands[index].Args[1].Value = path.Dir(scripts[0]) + "/"
	return true
}
