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

// seen returns the observations by gVisor's kernel of a record's command, or nil.
func seen(r proposal.Record) *proposal.Observations {
	if r.Result == nil {
		return nil
	}
	return r.Result.Observations
}

// refusedPrograms counts the programs that policy did not let r's command start.
func refusedPrograms(r proposal.Record) int {
	if o := seen(r); o != nil {
		return o.Counts.Refused
	}
	return 0
}

// crashes counts r's processes that ended like a runtime with a bug.
func crashes(r proposal.Record) (n int, names []string) {
	if o := seen(r); o != nil {
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
	if o := seen(r); o != nil {
		for _, p := range o.Programs {
			if n(p) > 0 {
				names = append(names, p.Name)
			}
		}
	}
	return distinct(names)
}

func distinct(list []string) []string {
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

// observation lists what needs attention in the observations, other than refusals.
func observation(r proposal.Record, l level) []string {
	o := seen(r)
	if o == nil {
		return nil
	}
	var items []string
	if findings := slices.DeleteFunc(slices.Clone(o.Findings), ofSecrets); len(findings) > 0 {
		items = append(items, "<li>findings:"+list(findings, l.list, func(f proposal.Finding) string { return finding(f, l) })+"</li>")
	}
	if n, names := crashes(r); n > 0 {
		items = append(items, fmt.Sprintf("<li>crashed: %s%s: a bug in the program or its runtime, not a test failure</li>", several(names, func(s string) string { return code(s, 60) }), timesHTML(n)))
	}
	return items
}

// troubles has an item of a list for each kind of refusal that the command met.
func troubles(r proposal.Record, l level) []string {
	o := seen(r)
	if o == nil {
		return nil
	}
	var lines []string
	against := func(words, kind string, n int) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("<li>%s: %s%s</li>", words, text.Count(int64(n)), list(objections(o.Execs, kind), l.list, func(e proposal.Event) string { return refusedLine(e, l) })))
		}
	}
	against("⛔ programs that policy refused", proposal.EventRefused, o.Counts.Refused)
	against("👁 programs that would have been refused", proposal.EventExec, o.Counts.Watched)
	return append(lines, network(r, l)...)
}

// statistics describes what a command used and started.
func statistics(r proposal.Record, l level) []string {
	var items []string
	add := func(s string) { items = append(items, "<li>"+s+"</li>") }
	switch ran := r.Result != nil && r.Result.Status != proposal.NotRun && r.Result.Status != proposal.SandboxFailed; {
	case !ran:
	case r.Result.Usage != nil:
		add("took " + usage(*r.Result.Usage))
	default:
		add(fmt.Sprintf("CPU time %s, peak memory of the sandbox %s", milliseconds(r.Result.CPUMS), size(r.Result.PeakMem)))
	}
	o := seen(r)
	if o == nil {
		return items
	}
	add(explained(r))
	for _, group := range []struct {
		words string
		want  func(proposal.Reach) bool
	}{{"network, allowed:", isPassed}, {"network, observed and not enforced:", isObserved}} {
		if trips := tripsOf(reaches(r, group.want)); len(trips) > 0 {
			add(group.words + list(trips, (l.list+1)/2, func(v trip) string { return v.line(l) }))
		}
	}
	return append(items, noted(*o, l)...)
}

// noted lists the other notable events, grouped by class.
func noted(o proposal.Observations, l level) []string {
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
			items = append(items, fmt.Sprintf("<li>%s: %s%s</li>", group.words, text.Count(int64(n)), list(events, l.list, func(e proposal.Event) string { return eventLine(e, l) })))
		}
	}
	return items
}

// explained is the line that compares predicted and started programs.
func explained(r proposal.Record) string {
	o := seen(r)
	c := o.Counts
	s := fmt.Sprintf("%s started (recorded by gVisor&#39;s kernel, %s)", programs(c.Execs), completeness(*o))
	if c.Execs == 0 {
		return s
	}
	var parts []string
	for _, part := range []struct {
		n   int
		how string
	}{{c.Predicted, "named in the command"}, {c.Decided, "allowed by policy when they started"}, {c.Execs - c.Predicted - c.Decided, "started by those programs"}} {
		if part.n > 0 {
			parts = append(parts, text.Count(int64(part.n))+" "+part.how)
		}
	}
	return s + ": " + strings.Join(parts, ", ")
}

// completeness returns whether the observations are complete, or why not.
func completeness(o proposal.Observations) string {
	switch {
	case o.Complete:
		return "complete"
	case o.Counts.Dropped > 0:
		return fmt.Sprintf("<b>incomplete</b> (events lost: %s)", text.Count(int64(o.Counts.Dropped)))
	}
	return "<b>incomplete</b> (the recorder ended early)"
}

func programs(n int) string {
	if n == 1 {
		return "1 program"
	}
	return text.Count(int64(n)) + " programs"
}

// finding describes one finding of policy, with its event.
func finding(f proposal.Finding, l level) string {
	return code(f.Rule, 80) + " " + prose(f.Message, l.long) + ": " + eventLine(f.Event, l)
}

// objections returns the execs that policy objected to, each argv once: those that it
// refused, or those that it only observed.
func objections(execs []proposal.Event, kind string) []proposal.Event {
	var once []proposal.Event
	at := map[string]int{}
	for _, e := range execs {
		refused := e.Kind == proposal.EventRefused
		if refused != (kind == proposal.EventRefused) || !refused && (e.Decision == nil || !e.Decision.Observed) || e.Exec == nil {
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
func refusedLine(e proposal.Event, l level) string {
	x := e.Exec
	words, how := strings.Join(quoteAll(x.Argv), " "), " started by "
	switch {
	case x.Loaded:
		words, how = x.Path, " loaded as code by "
	case x.ArgvCut:
		words += " …"
	}
	s := code(words, l.short+60) + timesHTML(e.Times)
	if !x.Loaded && (len(x.Argv) == 0 || path.Base(x.Argv[0]) != path.Base(x.Path) || x.Layer != proposal.LayerRootfs) {
		s += " which is " + code(x.Path, l.short+60)
	}
	if by := e.Program; by != "" {
		s += how + code(base(by), l.short)
	}
	if d := e.Decision; d != nil && d.Reason != nil {
		s += ":"
		if d.Reason.Rule != "" {
			s += " " + code(d.Reason.Rule, 80)
		}
		s += " " + prose(d.Reason.Message, l.long) + instead(d.Reason.Suggestion, l)
	} else if d != nil && len(d.Rules) > 0 {
		s += ": " + code(d.Rules[0], 80)
	}
	return s
}

// eventLine describes one notable event.
func eventLine(e proposal.Event, l level) string {
	s := code(base(e.Program), l.short) + " " + verb(e)
	call := e.Call
	if e.Kind != proposal.EventPrivilege {
		call = "" // the verb says it
	}
	for _, part := range []struct{ before, text string }{{" ", call}, {" ", e.Path}, {" to ", e.Target}, {" ", e.Address}} {
		if part.text != "" {
			s += part.before + code(part.text, l.short+60)
		}
	}
	if e.Flow != nil {
		s += " " + code(e.Flow.Egress.Destination(), l.short+60)
	}
	if e.Kind == proposal.EventRefused && e.Exec != nil && !e.Exec.Loaded {
		s += " " + code(strings.Join(quoteAll(e.Exec.Argv), " "), l.short+60)
	}
	s += timesHTML(e.Times)
	if e.Errno != "" {
		s += ": " + code(e.Errno, 40)
	}
	if e.Unverified {
		s += " (path as the process gave it, after a change of mounts or root)"
	}
	return s
}

// verbs are the past tense for what was done, and the infinitive for what was tried.
var verbs = map[string][2]string{
	proposal.EventExec: {"started", "start"}, proposal.EventRefused: {"was not allowed to start", "start"}, proposal.EventLoad: {"loaded", "load"}, proposal.EventExit: {"ended", "end"},
	proposal.EventWrite: {"wrote to", "write to"}, proposal.EventRename: {"renamed", "rename"}, proposal.EventRemove: {"removed", "remove"},
	proposal.EventLink: {"linked", "link"}, proposal.EventMode: {"changed mode or owner of", "change mode or owner of"},
	proposal.EventConnect: {"connected to", "connect to"}, proposal.EventListen: {"listened on", "listen on"}, proposal.EventSend: {"sent to", "send to"},
	proposal.EventPrivilege: {"called", "call"},
	proposal.EventLookup:    {"looked up", "look up"}, proposal.EventConnection: {"connected to", "connect to"},
	proposal.EventRequest: {"sent a request to", "send a request to"}, proposal.EventDatagram: {"sent to", "send to"},
}

// verb returns what an event did, or tried to do.
func verb(e proposal.Event) string {
	if e.Kind == proposal.EventRefused && e.Exec != nil && e.Exec.Loaded {
		return "was not allowed to load"
	}
	v, known := verbs[e.Kind]
	if !known {
		return code(e.Kind, 40)
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
	return " ×" + text.Count(int64(n))
}

// base is path.Base, but "" for "".
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
