// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Web is a report as an HTML page.
type Web struct {
	Report proposal.Report
	// Log lists what the audit log says about the run, in order; nil if it was not read.
	Log []LogLine
	// LogOmitted counts events of the log that are not in Log.
	LogOmitted int
	// Verdict is the result of verifying the log, as one sentence; "" if it was not
	// verified. Verified reports that the log is complete and sealed.
	Verdict  string
	Verified bool
}

// A LogLine is one event of an audit log. All text in it is untrusted.
type LogLine struct {
	Time     time.Time
	Kind, ID string
	Words    string
}

// Limits of a page.
const (
	maxWebText    = 8 << 20 // units of all outputs
	maxWebCommand = 1 << 20 // units of a command
	maxWebDiffs   = 2 << 20 // units of all differences
	maxWebChunk   = 300     // lines of an output that are one element, so that a browser lays out what is seen
	maxWebNodes   = 2000    // programs in a tree
	maxWebDepth   = 30      // levels of a tree: a browser refuses deep pages
	maxWebLine    = 4000    // units of a text in one line
	maxWebList    = 5000    // items of a list
)

var (
	//go:embed web/page.html
	webPage string
	//go:embed web/style.css
	webStyle string
	//go:embed web/script.js
	webScript string

	webTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"line":  func(s any) string { return text.Inline(fmt.Sprint(s), maxWebLine) },
		"base":  baseName,
		"count": func(n any) string { return text.FormatCount(toInt64(n)) },
		"bytes": func(n any) string { return text.Size(toInt64(n)) },
		"ms":    formatMilliseconds,
		"clock": func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"time":  formatTime,
		"join":  strings.Join,
		"lines": func(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") },
		"first": firstItems,
	}).Parse(webPage))
)

func toInt64(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case proposal.Bytes:
		return int64(n)
	}
	return n.(int64)
}

// firstItems returns the first items of a slice of any type.
func firstItems(list any) any {
	v := reflect.ValueOf(list)
	return v.Slice(0, min(v.Len(), maxWebList)).Interface()
}

// cspSource returns a Content-Security-Policy source that allows one inline element.
func cspSource(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WebPolicy is the Content-Security-Policy of a page: its one script and its one style may
// be used, and nothing may be loaded, sent or framed.
func WebPolicy() string {
	return "default-src 'none'; script-src " + cspSource(webScript) + "; style-src " + cspSource(webStyle) +
		"; base-uri 'none'; form-action 'none'"
}

// Write writes the page: one file that needs no other, with a Content-Security-Policy. All
// text from the report is escaped and in the visible form of internal/kit/text, so that
// nothing in it is a tag, a link or a hidden character. The page is readable without its
// script, which only searches.
//
// The page repeats what the report says. It does not prove that the report is true.
func (w Web) Write(out io.Writer) error {
	w.Report.Records = trustedCauses(w.Report, false)
	return webTemplate.Execute(out, w.webModelOf())
}

// A webModel is what the template shows.
type webModel struct {
	Web
	Policy      string
	Style       template.CSS // ours
	Script      template.JS  // ours
	Mark, Title string
	Commands    []webCommand
	Worst       []webCommand // Commands, those that failed first
	About       [][2]string  // what the run is of, at the top
	Facts       [][2]string
	Origins     []string
	Toolchains  string
	Limit       int64 // ms at the right end of the timeline
	Changes     int
	Differences []webDifference
	Unshown     int // differences that are neither in the report nor on the page
}

// A webCommand is a record with everything that the template needs.
type webCommand struct {
	proposal.Record
	N               int
	State, Mark     string
	Outcome         string
	Text, Language  string
	Short           string
	Open            bool
	Start           int64 // ms since the run's start
	Known           bool  // Start is known
	Wall            int64
	Ran             bool
	Reasons         []proposal.Reason
	Granted         []string
	Requested       string
	Notes           []string
	Causes          []string // what the output of a failed command says
	Outputs         []webOutput
	Displays        []proposal.Display
	Refused         []proposal.Event
	Programs        []*webProgram
	ProgramsOmitted int
	Observed        *proposal.Observations
	Network         []proposal.Reach
}

type webOutput struct {
	Name, Label string
	Chunks      []string
}

type webProgram struct {
	Line     string
	Wrong    bool
	Children []*webProgram
}

func (w Web) webModelOf() webModel {
	p := Page{Parts: []Part{{Report: w.Report}}}
	run := w.Report.Run
	m := webModel{Web: w, Policy: WebPolicy(), Style: template.CSS(webStyle), Script: template.JS(webScript),
		Mark: p.worstMark(), Title: p.plainTitle(),
		Facts: runFacts(run), Toolchains: toolchainList(run.Toolchains), Limit: max(1, run.WallMS)}
	for _, o := range run.Policies {
		m.Origins = append(m.Origins, originWords(o))
	}
	room, at := maxWebText, int64(0)
	for i, r := range w.Report.Records {
		c := webCommandOf(w.Report, r, i, &room)
		if !c.Known {
			c.Start = at
		}
		if at = c.Start + c.Wall; at > m.Limit {
			m.Limit = at
		}
		if r.Result != nil {
			m.Changes += len(r.Result.Changes.Files)
		}
		m.Commands = append(m.Commands, c)
	}
	m.Worst = slices.Clone(m.Commands)
	slices.SortStableFunc(m.Worst,
		func(a, b webCommand) int { return kindOrder[kindOf(a.Record)] - kindOrder[kindOf(b.Record)] })
	for _, fact := range m.Facts {
		if slices.Contains(aboutFacts, fact[0]) {
			m.About = append(m.About, fact)
		}
	}
	m.Differences, m.Unshown = webDifferences(w.Report)
	return m
}

// aboutFacts are the facts at the top of a page.
var aboutFacts = []string{"repository", "pull request", "commit", "proposed by"}

// kindOrder sorts commands, those that need attention first.
var kindOrder = [...]int{failed: 0, broken: 0, denied: 1, asked: 2, unable: 3, before: 3, notRun: 4, succeeded: 5}

// states are the classes of the outcomes.
var states = [...]string{failed: "bad", broken: "bad", denied: "bad", asked: "warn", unable: "warn", before: "warn",
	notRun: "none", succeeded: "good"}

func webCommandOf(report proposal.Report, r proposal.Record, n int, room *int) webCommand {
	k := kindOf(r)
	mark, _ := describeOutcome(r)
	cmd, info := decidedText(r)
	c := webCommand{Record: r, N: n, State: states[k], Mark: mark, Outcome: plainOutcome(r), Language: info,
		Short: text.Inline(shortCommand(r), 120),
		Text:  visibleText(cmd), Open: k == failed || k == broken || k == denied || k == asked,
		Reasons: r.Decision.Reasons, Requested: visibleText(extraRequests(r.Proposal)), Notes: plainNotes(r),
		Observed: observationsOf(r)}
	c.Granted, c.Causes = grantItems(r.Decision.Grant), plainFailures(report, r)
	if r.Result != nil {
		c.Wall, c.Ran = r.Result.WallMS, r.Result.Status != proposal.NotRun && r.Result.Cached == nil
		c.Outputs = webOutputs(shownResult(report, r), room)
		if report.Withheld == nil {
			c.Displays = r.Result.Displays
		}
	}
	if o := c.Observed; o != nil {
		c.Refused = append(findObjections(o.Execs, proposal.EventRefused),
			findObjections(o.Execs, proposal.EventExec)...)
		c.Programs, c.ProgramsOmitted = webPrograms(o.Programs)
		c.Network = o.Network
		if len(o.Execs) > 0 && !o.Execs[0].Time.IsZero() && !report.Run.Start.IsZero() {
			c.Start = o.Execs[0].Time.Sub(report.Run.Start).Milliseconds()
			c.Known = c.Start >= 0 && c.Start <= max(report.Run.WallMS, 1)
		}
	}
	return c
}

// visibleText returns a text of several lines in the visible form.
func visibleText(s string) string {
	return text.Excerpt([]byte(s), nil, int64(len(s)), maxWebCommand).Text
}

// plainNotes lists what there is to know about a command besides its decision and output.
func plainNotes(r proposal.Record) []string {
	var notes []string
	add := func(format string, args ...any) {
		notes = append(notes, text.Inline(fmt.Sprintf(format, args...), maxWebLine))
	}
	if r.Proposal.Why != "" {
		add("proposer's reason: %s", r.Proposal.Why)
	}
	if r.Proposal.Expect != "" {
		add("expected: %s", r.Proposal.Expect)
	}
	if r.Result != nil && r.Result.Detail != "" {
		add("%s", r.Result.Detail)
	}
	if r.Result != nil && r.Result.Leftover > 0 {
		add("leftover processes killed: %d", r.Result.Leftover)
	}
	if words := limitAdvice(r); words != "" {
		add("%s", words)
	}
	for _, words := range slices.Concat(causePlain(r), retriedPlain(r), redactedWarnings(r)) {
		add("%s", words)
	}
	return notes
}

// grantItems describes what an allowed command got.
func grantItems(g *proposal.Grant) []string {
	if g == nil {
		return nil
	}
	l := g.Limits
	list := []string{fmt.Sprintf("limits: time %s, %g processors, memory %s, %d processes, disk %s, %d open files, output %s", l.Wall, l.CPUs, l.Memory, l.Pids, l.Disk, l.Files, l.Output)}
	network := "network: none"
	if len(g.Network) > 0 {
		network = "network: " + strings.Join(g.Network, ", ")
	}
	list = append(list, network)
	if names := slices.Sorted(maps.Keys(g.Env)); len(names) > 0 {
		list = append(list, "environment: "+strings.Join(names, ", "))
	}
	return list
}

// webOutputs returns the outputs of a command, in room units of all outputs of the page.
func webOutputs(r *proposal.Result, room *int) []webOutput {
	if r == nil {
		return nil
	}
	var list []webOutput
	for _, s := range streamsOf(r) {
		if s.stream.Bytes == 0 {
			continue
		}
		b := text.Excerpt(s.stream.Head, s.stream.Tail, s.stream.Bytes, max(*room, smallOutput))
		*room -= b.Units
		o := webOutput{Name: s.name, Label: text.Size(s.stream.Bytes), Chunks: splitChunks(b.Text)}
		if b.Omitted > 0 {
			o.Label += ", " + text.FormatCount(b.Omitted) + " omitted"
		}
		if s.stream.File != "" {
			o.Label += ", file " + text.Inline(path.Base(s.stream.File), 160)
		}
		list = append(list, o)
	}
	return list
}

// splitChunks divides a text after every maxWebChunk lines.
func splitChunks(s string) []string {
	var list []string
	for s != "" {
		end := 0
		for range maxWebChunk {
			n := strings.IndexByte(s[end:], '\n')
			if n < 0 {
				end = len(s)
				break
			}
			end += n + 1
		}
		list = append(list, s[:end])
		s = s[end:]
	}
	return list
}

// webPrograms returns the tree of programs, and how many of them it does not show. Below
// maxWebDepth levels, a program is shown beside its parent.
func webPrograms(list []proposal.Program) (roots []*webProgram, omitted int) {
	nodes := make([]*webProgram, 0, min(len(list), maxWebNodes))
	parents, depths := []int{}, []int{}
	for i, p := range list {
		if i == maxWebNodes {
			return roots, len(list) - i
		}
		node := &webProgram{Line: programLine(p), Wrong: hasProblem(p)}
		parent, depth := p.Parent, 0
		if parent >= i || parent < 0 { // an untrusted report may contain any number
			parent = -1
		} else if depth = depths[parent] + 1; depth == maxWebDepth {
			parent, depth = parents[parent], depth-1
		}
		if nodes, parents, depths = append(nodes, node), append(parents, parent), append(depths, depth); parent < 0 {
			roots = append(roots, node)
		} else {
			nodes[parent].Children = append(nodes[parent].Children, node)
		}
	}
	return roots, 0
}

// runFacts are the conditions of a run, without those that are not known.
func runFacts(run proposal.Run) [][2]string {
	var list [][2]string
	for _, fact := range [][2]string{
		{"run", run.ID}, {"proposed by", run.Proposer}, {"approved by", approverName(run)}, {"plan", run.PlanDigest}, {"policy", run.Policy}, {"mode", run.Mode}, {"network", run.NetworkMode()},
		{"repository", run.Repository}, {"pull request", formatCount(run.PR)}, {"fork", run.Fork}, {"commit", run.HeadSHA}, {"base", run.BaseSHA}, {"workspace", run.Workspace},
		{"working directory", run.Cwd}, {"root file system", run.Rootfs}, {"runsc", run.Runsc}, {"fumehood", run.Version},
	} {
		if fact[1] != "" {
			list = append(list, [2]string{fact[0], text.Inline(fact[1], maxWebLine)})
		}
	}
	return list
}

func formatCount(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
