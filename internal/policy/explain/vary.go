// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// nearestVariation is the nearest change of the proposal's own text that is allowed: unknown parts
// written literally, or without what has no effect in a sandbox. It is "" if none was found.
func (v *Adviser) nearestVariation(ctx context.Context, p proposal.Proposal, a proposal.Analysis) string {
	text := cmp.Or(a.Canonical, facts.OwnText(p, a))
	if text == "" || len(text) > 2*valid.MaxAlternative || len(a.Commands) > maxParts {
		return ""
	}
	left := maxTried
	try := func(candidate string) textDecision {
		if candidate == "" || left == 0 {
			return textDecision{against: 1 << 20}
		}
		left--
		// or the rest is not valid shell text
		return v.tryText(ctx, strings.ReplaceAll(strings.TrimSpace(candidate), "\n", "; "))
	}
	own := strings.TrimSpace(a.Canonical)
	fits := func(t textDecision) bool { return t.allowed && t.canonical != own }
	for _, w := range rewritesOf(text, a.Unknowns) {
		if t := try(w.After); fits(t) {
			return t.canonical
		}
	}
	if len(a.Unknowns) > 0 {
		return ""
	}
	if t := reduceText(text, try); fits(t) {
		return t.canonical
	}
	for _, c := range a.Commands {
		if t := try(lookedUp(a, c)); fits(t) {
			return t.canonical
		}
	}
	return ""
}

// lookedUp is a's text with c's program by its name without the path: another path is
// another program.
func lookedUp(a proposal.Analysis, c proposal.Command) string {
	if !strings.HasPrefix(c.Program, "/") || c.Span.Start < 0 || c.Span.End > len(a.Canonical) ||
		c.Span.Start >= c.Span.End {
		return ""
	}
	part := a.Canonical[c.Span.Start:c.Span.End]
	return a.Canonical[:c.Span.Start] + strings.Replace(part, c.Program, path.Base(c.Program), 1) +
		a.Canonical[c.Span.End:]
}

// reduceText makes removals from text, one after the other, as long as each step leaves fewer
// reasons against the text.
func reduceText(text string, try func(string) textDecision) textDecision {
	now := try(text)
	for range 3 {
		best := textDecision{}
		var better string
		for _, candidate := range removals(text) {
			t := try(candidate)
			if t.against < now.against && (better == "" || t.against < best.against) {
				best, better = t, candidate
			}
			if best.allowed {
				return best
			}
		}
		if better == "" {
			return textDecision{}
		}
		now, text = best, better
	}
	return textDecision{}
}

var (
	plainWord = pattern.New(`^[A-Za-z][A-Za-z0-9_.+-]*$`)
	breaks    = []string{"|", "||", "&&", ";", "&", "{", "}", "(", ")", "|&", "!", "do", "then", "else"}
	// openerOption matches options of openers that have no value and change nothing inside.
	openerOption = pattern.New(`^(?:-[EHSkn]+|-[ioe](?:L|[0-9]+))$`)
	// unused are variables for programs that need a terminal.
	unused = pattern.New(`^(?:PAGER|GIT_PAGER|MANPAGER|SYSTEMD_PAGER|LESS|LESSOPEN|EDITOR|GIT_EDITOR|VISUAL|BROWSER)=`)
)

// openers are programs that run the program after them as the sandbox does anyway: without
// privileges, a terminal or a session to outlive.
var openers = []string{"sudo", "doas", "pkexec", "fakeroot", "env", "nohup", "setsid", "exec", "command", "unbuffer",
	"stdbuf", "busybox", "toybox", "chronic"}

// removals returns copies of text, each without one thing that has no effect in a sandbox: a
// program that runs the one after it, with its options, or a variable for a program that needs
// a terminal. No other word is removed: the rest would be another command.
func removals(text string) []string {
	var all []string
	words := splitWords(text)
	cut := func(from, to int) {
		before, rest := strings.TrimRight(text[:words[from].start], " "), text[words[to].end:]
		if before == "" || strings.HasSuffix(before, "\n") {
			rest = strings.TrimLeft(rest, " ")
		}
		all = append(all, before+rest)
	}
	begins := true
	for i, w := range words {
		switch {
		case slices.Contains(breaks, w.text):
			begins = true
			continue
		case begins && unused.MatchString(w.text):
			cut(i, i)
			continue
		case begins && slices.Contains(openers, w.text):
			last := i
			for last+1 < len(words) && openerOption.MatchString(words[last+1].text) {
				last++
			}
			if last+1 < len(words) && plainWord.MatchString(strings.Trim(words[last+1].text, `'"`)) {
				cut(i, last)
			}
		}
		begins = false
	}
	return all
}

type word struct {
	text       string
	start, end int
}

// splitWords splits canonical text at blanks outside quotes and substitutions. It is not a
// parser: text that it splits wrongly is refused when it is parsed.
func splitWords(text string) []word {
	var all []word
	start, depth, quote := -1, 0, byte(0)
	for i := 0; i <= len(text); i++ {
		if i == len(text) || quote == 0 && depth == 0 &&
			(text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == ';') {
			if start >= 0 {
				all = append(all, word{text[start:i], start, i})
				start = -1
			}
			if i < len(text) && (text[i] == ';' || text[i] == '\n') {
				all = append(all, word{";", i, i + 1})
			}
			continue
		}
		if start < 0 {
			start = i
		}
		switch b := text[i]; {
		case b == '\\' && quote != '\'':
			i = min(i+1, len(text)-1)
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '\'' || b == '"' || b == '`':
			quote = b
		case b == '(':
			depth++
		case b == ')':
			depth--
		}
	}
	return all
}
