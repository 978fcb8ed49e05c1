// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A processTree is a command's tree of programs, with data for drawing it.
type processTree struct {
	list     []proposal.Program
	children [][]int // by node; the last entry has those without a parent
	chosen   []bool
}

func newProcessTree(list []proposal.Program) *processTree {
	f := &processTree{list: list, children: make([][]int, len(list)+1), chosen: make([]bool, len(list))}
	for i, p := range list {
		at := p.Parent
		if at < 0 || at >= i {
			at = len(list) // an untrusted report may contain any number
		}
		f.children[at] = append(f.children[at], i)
	}
	return f
}

// chooseNodes marks at most n nodes to be shown: first those with a problem, with all of
// their ancestors, then the others in the order in which they first started.
func (f *processTree) chooseNodes(n int) {
	for _, wanted := range []func(proposal.Program) bool{hasProblem, func(proposal.Program) bool { return true }} {
		for i, p := range f.list {
			if f.chosen[i] || !wanted(p) {
				continue
			}
			above := f.unchosenAncestors(i)
			if len(above) > n {
				continue
			}
			for _, j := range above {
				f.chosen[j] = true
			}
			n -= len(above)
		}
	}
}

// unchosenAncestors returns i and its ancestors that are not yet chosen.
func (f *processTree) unchosenAncestors(i int) []int {
	var list []int
	for i >= 0 && !f.chosen[i] {
		list = append(list, i)
		parent := f.list[i].Parent
		if parent >= i {
			break
		}
		i = parent
	}
	return list
}

func hasProblem(p proposal.Program) bool { return p.Refused+p.Watched+p.Crashed > 0 }

// drawPrograms returns the tree of programs as lines, at most about n of them, or "" if
// there is nothing to show.
func drawPrograms(list []proposal.Program, n int) string {
	if len(list) == 0 || n <= 0 {
		return ""
	}
	f := newProcessTree(list)
	f.chooseNodes(n)
	var b strings.Builder
	f.drawChildren(&b, len(list), "", "")
	return b.String()
}

// drawChildren writes the children of a node, each with the prefix that the lines before it
// require.
func (f *processTree) drawChildren(b *strings.Builder, node int, first, rest string) {
	var shown []int
	left, starts := 0, 0
	for _, i := range f.children[node] {
		if f.chosen[i] {
			shown = append(shown, i)
			continue
		}
		n, k := f.countBelow(i)
		left, starts = left+n, starts+k
	}
	if node < len(f.list) {
		starts += f.list[node].Omitted
	}
	for k, i := range shown {
		last := k == len(shown)-1 && starts == 0
		head, tail := "├─ ", "│  "
		if last {
			head, tail = "└─ ", "   "
		}
		if node == len(f.list) {
			head, tail = "", ""
		}
		b.WriteString(rest + head + programLine(f.list[i]) + "\n")
		f.drawChildren(b, i, rest+head, rest+tail)
	}
	if starts > 0 {
		b.WriteString(rest + "└─ … " + moreStarts(left, starts) + "\n")
	}
}

// countBelow counts the nodes of a branch that is not shown, and the starts in it.
func (f *processTree) countBelow(i int) (nodes, starts int) {
	p := f.list[i]
	nodes, starts = 1, p.Runs+p.Refused+p.Omitted
	for _, j := range f.children[i] {
		n, k := f.countBelow(j)
		nodes, starts = nodes+n, starts+k
	}
	return nodes, starts
}

func moreStarts(nodes, starts int) string {
	if nodes == 0 || nodes == starts {
		return text.FormatCount(int64(starts)) + " more"
	}
	return fmt.Sprintf("%s more starts of %s programs", text.FormatCount(int64(starts)), text.FormatCount(int64(nodes)))
}

// programLine describes one program: its name, the number of runs, its location
// unless that is the usual one, and what went wrong.
func programLine(p proposal.Program) string {
	s := text.Inline(p.Name, 60)
	file := p.Path
	if p.Script != "" {
		file = p.Script
	}
	if base := path.Base(p.Path); p.Name != base || p.Layer != proposal.LayerRootfs {
		s += " (" + layers[p.Layer] + text.Inline(file, 100) + ")"
	}
	if p.Runs > 1 {
		s += " ×" + text.FormatCount(int64(p.Runs))
	}
	rule := text.Inline(p.Rule, 60)
	if p.Refused > 0 {
		s += "  ⛔ refused" + timesSuffix(p.Refused) + byRule(rule)
	}
	if p.Watched > 0 {
		s += "  👁 would be refused" + timesSuffix(p.Watched) + byRule(rule)
	}
	if p.Crashed > 0 {
		s += "  💥 crashed" + timesSuffix(p.Crashed)
	}
	return s
}

// layers names the locations of programs outside the root file system.
var layers = map[string]string{
	proposal.LayerRootfs: "", proposal.LayerWorkspace: "from the pull request: ",
	proposal.LayerWritten: "written in the sandbox: ",
	proposal.LayerMemory:  "in memory: ", proposal.LayerOther: "from elsewhere: ",
}

func timesSuffix(n int) string {
	if n == 1 {
		return ""
	}
	return " ×" + text.FormatCount(int64(n))
}

func byRule(rule string) string {
	if rule == "" {
		return ""
	}
	return " by " + rule
}
