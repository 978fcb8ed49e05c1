// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The maximum units of all commands of a page that wait for approval, together.
// Within it, they are shown in full even if nothing else is.
const (
	maxAsked   = 16000
	askedFrame = 1000 // the text around each

	askedPage = 20000 // the rest of a page in its shortest form
)

// Askable reports whether a page can show everything in parts that waits for
// approval in full: a person must not approve what they cannot see. Callers must
// set Pending only if it is true.
func Askable(parts []Part) bool {
	_, whole := askedUnits(parts)
	return whole
}

// AskedUnits returns how many units a page needs to show everything in parts that waits for approval
// in full, if that is Askable.
func AskedUnits(parts []Part) int {
	units, _ := askedUnits(parts)
	return units + askedPage
}

func askedUnits(parts []Part) (units int, whole bool) {
	for _, part := range parts {
		for _, r := range part.Report.Records {
			if kindOf(r) != asked {
				continue
			}
			units += askedFrame
			cmd, _ := decidedText(r)
			for _, s := range []string{cmd, extraRequests(r.Proposal)} {
				b := text.Excerpt([]byte(s), nil, int64(len(s)), maxAsked)
				if units += b.Units; b.Omitted > 0 || units > maxAsked {
					return units, false
				}
			}
		}
	}
	return units, true
}

// Unaskable returns the notice that the waiting commands cannot be approved.
func Unaskable() Notice {
	return Notice{"warning", "The commands that need approval are too long to show in full, so they cannot be approved here. Propose fewer or shorter commands"}
}

// extraRequests returns what a proposal requests in addition to its command, as plain lines.
func extraRequests(p proposal.Proposal) string {
	var b strings.Builder
	if words := p.Earlier.Words(); words != "" {
		fmt.Fprintf(&b, "%s:\n%s", words, p.Earlier.Text)
	}
	if p.Cwd != "" && p.Cwd != "." {
		fmt.Fprintf(&b, "working directory: %q\n", p.Cwd)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		fmt.Fprintf(&b, "environment variable: %s=%q\n", name, p.Env[name])
	}
	for _, each := range []struct {
		name string
		list []string
	}{{"host", p.Network}, {"output file", p.Outputs}, {"needs", p.Needs}} {
		for _, s := range each.list {
			fmt.Fprintf(&b, "%s: %q\n", each.name, s)
		}
	}
	if p.Stdin != "" {
		b.WriteString("standard input:\n" + p.Stdin)
	}
	return b.String()
}

// showQuestion shows what a person is asked to approve: in full, if they can approve it.
func (p Page) showQuestion(d *doc, r proposal.Record, l detailLevel) {
	room := max(l.long, 200)
	if p.Pending != nil {
		room = maxAsked
	}
	cmd, info := decidedText(r)
	d.addBlock(fencedBlock(info, text.Excerpt([]byte(cmd), nil, int64(len(cmd)), room).Text))
	if also := extraRequests(r.Proposal); also != "" {
		d.addBlock(fencedBlock("text", text.Excerpt([]byte(also), nil, int64(len(also)), room).Text))
	}
	if p.Pending != nil {
		d.addBlock("<p>✋ " + p.approveHint(countKinds(p.allRecords())[asked]) + "</p>")
	}
}
