// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// observationsOf returns the observations by gVisor's kernel of a record's command, or nil.
func observationsOf(r proposal.Record) *proposal.Observations {
	if r.Result == nil {
		return nil
	}
	return r.Result.Observations
}

// refusedPrograms counts the programs that policy did not let r's command start.
func refusedPrograms(r proposal.Record) int {
	if o := observationsOf(r); o != nil {
		return o.Counts.Refused
	}
	return 0
}

// countCrashes counts r's processes that ended like a runtime with a bug.
func countCrashes(r proposal.Record) (n int, names []string) {
	if o := observationsOf(r); o != nil {
		for _, p := range o.Programs {
			n += p.Crashed
		}
	}
	return n, namesOf(r, func(p proposal.Program) int { return p.Crashed })
}

// refusedNames returns the names of the refused programs, each once.
func refusedNames(r proposal.Record) []string {
	return namesOf(r, func(p proposal.Program) int { return p.Refused })
}

func namesOf(r proposal.Record, n func(proposal.Program) int) []string {
	var names []string
	if o := observationsOf(r); o != nil {
		for _, p := range o.Programs {
			if n(p) > 0 {
				names = append(names, p.Name)
			}
		}
	}
	return distinctStrings(names)
}

func distinctStrings(list []string) []string {
	known := map[string]bool{}
	var once []string
	for _, s := range list {
		if !known[s] {
			known[s] = true
			once = append(once, s)
		}
	}
	return once
}

// observationItems lists what needs attention in the observations, other than refusals.
func observationItems(r proposal.Record, l detailLevel) []string {
	o := observationsOf(r)
	if o == nil {
		return nil
	}
	var items []string
	if findings := slices.DeleteFunc(slices.Clone(o.Findings), ofSecrets); len(findings) > 0 {
		items = append(items, "<li>findings:"+
			htmlList(findings, l.list, func(f proposal.Finding) string { return findingText(f, l) })+"</li>")
	}
	if n, names := countCrashes(r); n > 0 {
		items = append(items, fmt.Sprintf("<li>crashed: %s%s: a bug in the program or its runtime, not a test failure</li>", showSeveral(names, func(s string) string { return formatCode(s, 60) }), timesHTML(n)))
	}
	return items
}

// runtimeRefusalItems has an item of a list for each kind of refusal that the command met.
func runtimeRefusalItems(r proposal.Record, l detailLevel) []string {
	o := observationsOf(r)
	if o == nil {
		return nil
	}
	var lines []string
	against := func(words, kind string, n int) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("<li>%s: %s%s</li>", words, text.FormatCount(int64(n)),
				htmlList(findObjections(o.Execs, kind), l.list,
					func(e proposal.Event) string { return refusedLine(e, l) })))
		}
	}
	against("⛔ programs that policy refused", proposal.EventRefused, o.Counts.Refused)
	against("👁 programs that would have been refused", proposal.EventExec, o.Counts.Watched)
	return append(lines, networkItems(r, l)...)
}

// usageItems describes what a command used and started.
func usageItems(r proposal.Record, l detailLevel) []string {
	var items []string
	add := func(s string) { items = append(items, "<li>"+s+"</li>") }
	switch ran := r.Result != nil && r.Result.Status != proposal.NotRun && r.Result.Status != proposal.SandboxFailed; {
	case !ran:
	case r.Result.Usage != nil:
		add("took " + usageText(*r.Result.Usage))
	default:
		add(fmt.Sprintf("CPU time %s, peak memory of the sandbox %s", formatMilliseconds(r.Result.CPUMS),
			formatSize(r.Result.PeakMem)))
	}
	o := observationsOf(r)
	if o == nil {
		return items
	}
	add(explainedLine(r))
	for _, group := range []struct {
		words string
		want  func(proposal.Reach) bool
	}{{"network, allowed:", isPassed}, {"network, observed and not enforced:", isObserved}} {
		if trips := tripsOf(filterReaches(r, group.want)); len(trips) > 0 {
			add(group.words + htmlList(trips, (l.list+1)/2, func(v hostTrip) string { return v.showTrip(l) }))
		}
	}
	return append(items, notedItems(*o, l)...)
}

// notedItems lists the other notable events, grouped by class.
func notedItems(o proposal.Observations, l detailLevel) []string {
	var items []string
	for _, group := range []struct {
		words string
		all   int
		kinds []string
	}{
		{"connections and sockets", o.Counts.Connects, []string{proposal.EventConnect, proposal.EventListen, proposal.EventSend}},
		{"attempts to gain privileges", o.Counts.Attempts, []string{proposal.EventPrivilege}},
		{"files outside the workspace and the temporary directories, or in .git and .github", 0, []string{proposal.EventWrite, proposal.EventRename, proposal.EventRemove, proposal.EventLink, proposal.EventMode}},
	} {
		var events []proposal.Event
		all := group.all
		for _, e := range o.Notable {
			switch {
			case !slices.Contains(group.kinds, e.Kind):
			case isSorting(e):
				all -= e.Times
			default:
				events = append(events, e)
			}
		}
		if n := max(all, len(events)); len(events) > 0 {
			items = append(items, fmt.Sprintf("<li>%s: %s%s</li>", group.words, text.FormatCount(int64(n)),
				htmlList(events, l.list, func(e proposal.Event) string { return eventLine(e, l) })))
		}
	}
	return items
}

// explainedLine is the line that compares predicted and started programs.
func explainedLine(r proposal.Record) string {
	o := observationsOf(r)
	c := o.Counts
	s := fmt.Sprintf("%s started (recorded by gVisor&#39;s kernel, %s)", countPrograms(c.Execs), completenessText(*o))
	if c.Execs == 0 {
		return s
	}
	var parts []string
	for _, part := range []struct {
		n   int
		how string
	}{{c.Predicted, "named in the command"}, {c.Decided, "allowed by policy when they started"},
		{c.Execs - c.Predicted - c.Decided, "started by those programs"}} {
		if part.n > 0 {
			parts = append(parts, text.FormatCount(int64(part.n))+" "+part.how)
		}
	}
	return s + ": " + strings.Join(parts, ", ")
}

// completenessText returns whether the observations are complete, or why not.
func completenessText(o proposal.Observations) string {
	switch {
	case o.Complete:
		return "complete"
	case o.Counts.Dropped > 0:
		return fmt.Sprintf("<b>incomplete</b> (events lost: %s)", text.FormatCount(int64(o.Counts.Dropped)))
	}
	return "<b>incomplete</b> (the recorder ended early)"
}

func countPrograms(n int) string {
	if n == 1 {
		return "1 program"
	}
	return text.FormatCount(int64(n)) + " programs"
}

// findingText describes one finding of policy, with its event.
func findingText(f proposal.Finding, l detailLevel) string {
	return formatCode(f.Rule, 80) + " " + formatProse(f.Message, l.long) + ": " + eventLine(f.Event, l)
}

// findObjections returns the execs that policy objected to, each argv once: those that it
// refused, or those that it only observed.
func findObjections(execs []proposal.Event, kind string) []proposal.Event {
	var once []proposal.Event
	at := map[string]int{}
	for _, e := range execs {
		refused := e.Kind == proposal.EventRefused
		if refused != (kind == proposal.EventRefused) || !refused && (e.Decision == nil || !e.Decision.Observed) ||
			e.Exec == nil {
			continue
		}
		key := e.Exec.Path + "\x00" + e.Exec.ArgvDigest + "\x00" + e.Program
		n, known := at[key]
		if !known {
			n, at[key] = len(once), len(once)
			e.Times = 0
			once = append(once, e)
		}
		once[n].Times++
	}
	return once
}

// refusedLine describes one refused program: its arguments, its parent, and the reason.
func refusedLine(e proposal.Event, l detailLevel) string {
	x := e.Exec
	words, how := strings.Join(quoteAll(x.Argv), " "), " started by "
	switch {
	case x.Loaded:
		words, how = x.Path, " loaded as code by "
	case x.ArgvCut:
		words += " …"
	}
	s := formatCode(words, l.short+60) + timesHTML(e.Times)
	if !x.Loaded && (len(x.Argv) == 0 || path.Base(x.Argv[0]) != path.Base(x.Path) || x.Layer != proposal.LayerRootfs) {
		s += " which is " + formatCode(x.Path, l.short+60)
	}
	if by := e.Program; by != "" {
		s += how + formatCode(baseName(by), l.short)
	}
	if d := e.Decision; d != nil && d.Reason != nil {
		s += ":"
		if d.Reason.Rule != "" {
			s += " " + formatCode(d.Reason.Rule, 80)
		}
		s += " " + formatProse(d.Reason.Message, l.long) + insteadText(d.Reason.Suggestion, l)
	} else if d != nil && len(d.Rules) > 0 {
		s += ": " + formatCode(d.Rules[0], 80)
	}
	return s
}

// eventLine describes one notable event.
func eventLine(e proposal.Event, l detailLevel) string {
	s := formatCode(baseName(e.Program), l.short) + " " + eventVerb(e)
	call := e.Call
	if e.Kind != proposal.EventPrivilege {
		call = "" // the verb says it
	}
	for _, part := range []struct{ before, text string }{{" ", call}, {" ", e.Path}, {" to ", e.Target},
		{" ", e.Address}} {
		if part.text != "" {
			s += part.before + formatCode(part.text, l.short+60)
		}
	}
	if e.Flow != nil {
		s += " " + formatCode(e.Flow.Egress.Destination(), l.short+60)
	}
	if e.Kind == proposal.EventRefused && e.Exec != nil && !e.Exec.Loaded {
		s += " " + formatCode(strings.Join(quoteAll(e.Exec.Argv), " "), l.short+60)
	}
	s += timesHTML(e.Times)
	if e.Errno != "" {
		s += ": " + formatCode(e.Errno, 40)
	}
	if e.Unverified {
		s += " (path as the process gave it, after a change of mounts or root)"
	}
	return s
}

// verbs are the past tense for what was done, and the infinitive for what was tried.
var verbs = map[string][2]string{
	proposal.EventExec: {"started", "start"}, proposal.EventRefused: {"was not allowed to start", "start"},
	proposal.EventLoad: {"loaded", "load"}, proposal.EventExit: {"ended", "end"},
	proposal.EventWrite: {"wrote to", "write to"}, proposal.EventRename: {"renamed", "rename"},
	proposal.EventRemove:  {"removed", "remove"},
	proposal.EventLink:    {"linked", "link"},
	proposal.EventMode:    {"changed mode or owner of", "change mode or owner of"},
	proposal.EventConnect: {"connected to", "connect to"}, proposal.EventListen: {"listened on", "listen on"},
	proposal.EventSend:      {"sent to", "send to"},
	proposal.EventPrivilege: {"called", "call"},
	proposal.EventLookup:    {"looked up", "look up"}, proposal.EventConnection: {"connected to", "connect to"},
	proposal.EventRequest: {"sent a request to", "send a request to"}, proposal.EventDatagram: {"sent to", "send to"},
}

// eventVerb returns what an event did, or tried to do.
func eventVerb(e proposal.Event) string {
	if e.Kind == proposal.EventRefused && e.Exec != nil && e.Exec.Loaded {
		return "was not allowed to load"
	}
	v, known := verbs[e.Kind]
	if !known {
		return formatCode(e.Kind, 40)
	}
	if e.Errno != "" && e.Kind != proposal.EventRefused || e.Flow != nil && e.Flow.Refused() {
		return "tried to " + v[1]
	}
	return v[0]
}

func timesHTML(n int) string {
	if n <= 1 {
		return ""
	}
	return " ×" + text.FormatCount(int64(n))
}

// baseName is path.Base, but "" for "".
func baseName(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
