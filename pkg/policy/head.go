// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An expander knows what some expansions hold. It believes only a variable that
// the text sets, and always to the same kind of thing.
type expander map[string]kind

// A kind is what an expansion prints.
type kind int

const (
	kindOther    kind = iota
	kindTemp          // a new file or folder under /tmp, as mktemp prints it
	kindRevision      // an object name of git, never an option
	kindFile          // a word that begins with a literal which is no dash
)

var (
	mktempCall = regexp.MustCompile(`^\$\(mktemp( -d| -q| -t [\w.-]*X{3,}[\w.]*| --suffix=[\w.]+| --directory| /tmp(/\w[\w.-]*)*/[\w.-]*X{3,}[\w.]*)*\)$`)
	gitCall    = regexp.MustCompile(`^\$\(git (merge-base( --octopus| --fork-point| --all)?( [\w@][\w./~^@{}-]*)+|rev-parse( --verify| --short(=\d+)?| -q| --quiet)* [\w@][\w./~^@{}-]*|hash-object [\w@][\w./-]*)\)$`)
)

// shellOwn are variables that the shell sets by itself, so that what the text sets
// them to is not all that they may hold.
var shellOwn = regexp.MustCompile(`^(_|REPLY|OPTARG|OPTIND|MAPFILE|PWD|OLDPWD|DIRSTACK|BASH\w*|COPROC\w*|COMP\w*|READLINE\w*|FUNCNAME|IFS|RANDOM|SRANDOM|SECONDS|LINENO|PIPESTATUS|HOME|PATH|GROUPS|E?UID|PPID|SHLVL|HIST\w*|HOST\w*|LINES|COLUMNS|EPOCH\w*)$`)

// systemTail is what would name the system's files if the variable before it were
// empty: not set yet, or set in another shell.
var systemTail = regexp.MustCompile(`^/(etc|usr|home|root|proc|dev|var|bin|sbin|lib\w*|opt|sys|run|boot|srv|mnt|media|workspace|\.\w*)(/|$)|\.\.`)

// plainFile is a word, or the beginning of a pattern, that is a path and nothing else.
var plainFile = regexp.MustCompile(`^\w[\w.-]*(/[\w.-]*)*$`)

func newExpander(commands []proposal.Command) expander {
	e := expander{}
	for _, c := range commands {
		for _, a := range c.Assigns {
			k := e.of(a.Value)
			if shellOwn.MatchString(a.Name) {
				k = kindOther
			}
			if before, ok := e["$"+a.Name]; ok && before != k {
				k = kindOther
			}
			e["$"+a.Name] = k
		}
	}
	return e
}

// of says what w holds when it is an expansion and nothing behind it changes that.
func (e expander) of(w proposal.Word) kind {
	if (w.Static || w.Glob && strings.Contains(w.Value, "/")) && plainFile.MatchString(w.Value) {
		return kindFile
	}
	switch {
	case w.Head == "":
		return kindOther
	case strings.HasPrefix(w.Head, "$("):
		return callKind(w)
	}
	return e[w.Head]
}

func callKind(w proposal.Word) kind {
	switch {
	case mktempCall.MatchString(w.Head) && !strings.Contains(w.Head, ".."):
		return kindTemp
	case gitCall.MatchString(w.Head):
		return kindRevision
	}
	return kindOther
}

// resolved replaces the expansion that w begins with by a path under /tmp, when that
// is what it is. The rest of the word is literal, so that its place is known.
func (e expander) resolved(w proposal.Word) proposal.Word {
	if w.Static || w.Head == "" || e.of(w) != kindTemp || w.Tail != "" && w.Tail[0] != '/' || systemTail.MatchString(w.Tail) {
		return w
	}
	return proposal.Word{Value: "/tmp/mktemp" + w.Tail, Static: true}
}

// settle resolves the words and redirections of c. A revision, and a quoted word
// that begins with a literal, keep their values but are no options.
func (e expander) settle(c proposal.Command) proposal.Command {
	if len(e) == 0 && !expands(c) {
		return c
	}
	args := make([]proposal.Word, len(c.Args))
	for i, w := range c.Args {
		args[i] = e.resolved(w)
		if k := e.of(w); !w.Static && w.Head != "" && (k == kindRevision || k == kindFile && !w.Split && pathTools[c.Program]) {
			args[i].Value, args[i].Glob = expanded, false
		}
	}
	redirects := make([]proposal.Redirect, len(c.Redirects))
	for i, r := range c.Redirects {
		redirects[i] = r
		redirects[i].Target = e.resolved(r.Target)
	}
	c.Args, c.Redirects = args, redirects
	return c
}

// pathTools take a word that is a path for nothing else.
var pathTools = map[string]bool{"find": true, "git": true, "rg": true, "sort": true}

// expanded stands for the beginning of a word that is known to be no option.
const expanded = "expanded"

func expands(c proposal.Command) bool {
	for _, w := range c.Args {
		if w.Head != "" {
			return true
		}
	}
	return false
}
