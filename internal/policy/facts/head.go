// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An expander knows the value of some expansions. It trusts a variable that the text sets, if always to the
// same kind of value, and TMPDIR and PWD as the sandbox and its shell set them.
type expander struct {
	kinds map[string]expansionKind
	tmp   bool // $TMPDIR is /tmp in the text's own shell
	pwd   bool // $PWD is the working directory there
}

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

// NewExpander reads the assignments of commands, which are those of p, and of text, which is how p is run.
func NewExpander(p proposal.Proposal, commands []proposal.Command, text string) expander {
	e := expander{kinds: map[string]expansionKind{}}
	for _, c := range commands {
		for _, a := range c.Assigns {
			k := e.kindOfWord(a.Value)
			if shellOwn.MatchString(a.Name) {
				k = kindOther
			}
			if before, ok := e.kinds["$"+a.Name]; ok && before != k {
				k = kindOther
			}
			e.kinds["$"+a.Name] = k
		}
	}
	e.tmp = e.isUntouched("TMPDIR", p, commands, tmpdirRead.ReplaceAllString(text, ""))
	e.pwd = e.isUntouched("PWD", p, commands, pwdRead.ReplaceAllString(text, ""))
	return e
}

// How a text may have the two variables. Everything else that has their names may set them.
var (
	tmpdirRead = pattern.New(`\$(TMPDIR\b|\{TMPDIR(:?-/tmp)?\})`)
	pwdRead    = pattern.New(`\$(PWD\b|\{PWD\})`)
)

var unquoted = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

// isUntouched reports whether a run sees the value that the sandbox gives to name: neither p nor one of
// commands sets it, and rest, the text without the expansions of name, does not have the name.
func (e expander) isUntouched(name string, p proposal.Proposal, commands []proposal.Command, rest string) bool {
	_, set := p.Env[name]
	_, assigned := e.kinds["$"+name]
	return p.Form() == "run" && !set && !assigned && !strings.Contains(unquoted.Replace(rest), name) &&
		!slices.ContainsFunc(commands, func(c proposal.Command) bool {
			return slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return strings.Contains(w.Value, name) })
		})
}

// kindOfWord is the kind of w if it is an expansion and the rest of the word does not change that.
func (e expander) kindOfWord(w proposal.Word) expansionKind {
	switch {
	case mktempCall.MatchString(w.Head) && !strings.Contains(w.Head, ".."):
		return kindTemp
	case w.Head == "":
		return kindOther
	}
	return e.kinds[w.Head]
}

// resolveExpansion replaces the expansion at the start of w, a word of c, with its value, if it is known: a
// path under /tmp, or the one directory of cwds. The rest of the word is literal, so its place is known.
func (e expander) resolveExpansion(w proposal.Word, c proposal.Command, cwds []string) proposal.Word {
	if w.Static || w.Head == "" || w.Tail != "" && w.Tail[0] != '/' || systemTail.MatchString(w.Tail) {
		return w
	}
	value, own := "", len(c.Via) == 0 // a shell that another program starts may have any values
	switch {
	case e.kindOfWord(w) == kindTemp:
		value = "/tmp/mktemp"
	case w.Head == "$TMPDIR" && e.tmp && own:
		value = "/tmp"
	case w.Head == "$PWD" && e.pwd && own && len(cwds) == 1 && w.Tail != "":
		value = cwds[0]
	}
	if value == "" {
		return w
	}
	return proposal.Word{Value: value + w.Tail, Static: true}
}

// ResolveCommand resolves the words and redirections of c, which may run in any of cwds; nil if they are not known.
func (e expander) ResolveCommand(c proposal.Command, cwds []string) proposal.Command {
	if !hasExpansion(c) {
		return c
	}
	args := make([]proposal.Word, len(c.Args))
	for i, w := range c.Args {
		args[i] = e.resolveExpansion(w, c, cwds)
	}
	redirects := make([]proposal.Redirect, len(c.Redirects))
	for i, r := range c.Redirects {
		redirects[i] = r
		redirects[i].Target = e.resolveExpansion(r.Target, c, cwds)
	}
	c.Args, c.Redirects = args, redirects
	return c
}

func hasExpansion(c proposal.Command) bool {
	return slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return w.Head != "" }) ||
		slices.ContainsFunc(c.Redirects, func(r proposal.Redirect) bool { return r.Target.Head != "" })
}
