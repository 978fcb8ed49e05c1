// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An expander knows the value of some expansions. It trusts only a variable that the text
// sets, and always to the same kind of value.
type expander map[string]expansionKind

// An expansionKind is the kind of value that an expansion has.
type expansionKind int

const (
	kindOther expansionKind = iota
	kindTemp                // a new file or directory under /tmp, as mktemp prints it
)

var mktempCall = pattern.New(`^\$\(mktemp( -d| -q| -t [\w.-]*X{3,}[\w.]*| --suffix=[\w.]+| --directory| /tmp(/\w[\w.-]*)*/[\w.-]*X{3,}[\w.]*)*\)$`)

// shellOwn are variables that the shell sets itself, so they may have values besides those
// that the text sets.
var shellOwn = pattern.New(`^(_|REPLY|OPTARG|OPTIND|MAPFILE|PWD|OLDPWD|DIRSTACK|BASH\w*|COPROC\w*|COMP\w*|READLINE\w*|FUNCNAME|IFS|RANDOM|SRANDOM|SECONDS|LINENO|PIPESTATUS|HOME|PATH|GROUPS|E?UID|PPID|SHLVL|HIST\w*|HOST\w*|LINES|COLUMNS|EPOCH\w*)$`)

// systemTail matches a rest that would name system files if the variable before it were
// empty: not set yet, or set in another shell.
var systemTail = pattern.New(`^/(etc|usr|home|root|proc|dev|var|bin|sbin|lib\w*|opt|sys|run|boot|srv|mnt|media|workspace|\.\w*)(/|$)|\.\.`)

// NewExpander reads the assignments of commands.
func NewExpander(commands []proposal.Command) expander {
	e := expander{}
	for _, c := range commands {
		for _, a := range c.Assigns {
			k := e.kindOfWord(a.Value)
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

// kindOfWord is the kind of w if it is an expansion and the rest of the word does not change that.
func (e expander) kindOfWord(w proposal.Word) expansionKind {
	switch {
	case mktempCall.MatchString(w.Head) && !strings.Contains(w.Head, ".."):
		return kindTemp
	case w.Head == "":
		return kindOther
	}
	return e[w.Head]
}

// resolveExpansion replaces the expansion at the start of w with a path under /tmp if it has such a
// value. The rest of the word is literal, so its place is known.
func (e expander) resolveExpansion(w proposal.Word) proposal.Word {
	if w.Static || w.Head == "" || e.kindOfWord(w) != kindTemp || w.Tail != "" && w.Tail[0] != '/' ||
		systemTail.MatchString(w.Tail) {
		return w
	}
	return proposal.Word{Value: "/tmp/mktemp" + w.Tail, Static: true}
}

// ResolveCommand resolves the words and redirections of c.
func (e expander) ResolveCommand(c proposal.Command) proposal.Command {
	if len(e) == 0 && !hasExpansion(c) {
		return c
	}
	args := make([]proposal.Word, len(c.Args))
	for i, w := range c.Args {
		args[i] = e.resolveExpansion(w)
	}
	redirects := make([]proposal.Redirect, len(c.Redirects))
	for i, r := range c.Redirects {
		redirects[i] = r
		redirects[i].Target = e.resolveExpansion(r.Target)
	}
	c.Args, c.Redirects = args, redirects
	return c
}

func hasExpansion(c proposal.Command) bool {
	for _, w := range c.Args {
		if w.Head != "" {
			return true
		}
	}
	return false
}
