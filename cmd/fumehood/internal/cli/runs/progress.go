// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Progress prints progress: on a terminal what runs, with its time and the last line that it
// printed, and elsewhere one line as each step ends, and as one of set-up begins. The zero Progress is not
// usable.
type Progress struct {
	w     io.Writer
	on    bool // w is a terminal
	color bool
	now   func() time.Time
	run   *runningStep
}

// A runningStep is the step that runs, and what is known of set-up.
type runningStep struct {
	mu      sync.Mutex
	name    string // "" if no step runs
	begun   time.Time
	limit   time.Duration // 0 if it is not known
	line    string        // the last that it printed
	stop    chan struct{} // closed when it ends
	setup   time.Duration // of the steps of set-up that ended
	layered bool          // a layer has, or keeps, what set-up leaves; or it was mentioned
}

// NewProgress returns a Progress to w.
func NewProgress(w io.Writer) Progress {
	return Progress{w: w, on: terminal.Is(w), color: terminal.WantsColors(w), now: time.Now, run: &runningStep{}}
}

// PrintNotice prints a line about work that takes a minute, in CI as well.
func (p Progress) PrintNotice(text string) {
	fmt.Fprintf(p.w, "fumehood: %s\n", terminal.EscapeLine(text))
}

// PrintDetail is Notice on a terminal only.
func (p Progress) PrintDetail(text string) {
	if p.on {
		p.PrintNotice(text)
	}
}

// PrintStep prints how a step ended, or that it does not begin. On a terminal it also shows the step
// while it runs; elsewhere it says that a step of set-up begins, which takes minutes. After long set-up it
// mentions layers, which keep what set-up leaves.
func (p Progress) PrintStep(s gate.Step) {
	name := terminal.EscapeLine(s.Proposal)
	if s.Of > 0 {
		name = fmt.Sprintf("[%d/%d] %s", s.Number, s.Of, name)
	}
	p.mentionLayers(s)
	begins := s.Result == nil && !s.Refused
	switch {
	case p.on && begins:
		p.beginStep(name, s.Decision)
	case p.on:
		p.endStep()
		fmt.Fprintf(p.w, "\x1b[K%s %s: %s\n", p.stepMark(s), name, describeEnd(s))
	case !begins:
		p.PrintNotice(name + ": " + describeEnd(s))
	case s.Setup:
		p.PrintNotice(name + ": started")
	}
}

// beginStep shows a step until end is called.
func (p Progress) beginStep(name string, d proposal.Decision) {
	p.endStep()
	r := p.run
	r.mu.Lock()
	r.name, r.begun, r.limit, r.line, r.stop = name, p.now(), 0, "", make(chan struct{})
	if d.Grant != nil {
		r.limit = time.Duration(d.Grant.Limits.Wall)
	}
	stop := r.stop
	r.mu.Unlock()
	p.showStep()
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.showStep()
			}
		}
	}()
}

// endStep stops showing the step that runs, if any.
func (p Progress) endStep() {
	p.run.mu.Lock()
	defer p.run.mu.Unlock()
	if p.run.name != "" {
		p.run.name = ""
		close(p.run.stop)
	}
}

const maxShown = 76 // characters, which nearly every terminal has in a line

// showStep prints the step that runs, in a line that the next one replaces.
func (p Progress) showStep() {
	r := p.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name == "" {
		return
	}
	text := "…  " + r.name
	if elapsed := p.now().Sub(r.begun).Truncate(time.Second); elapsed > 0 {
		text += " " + elapsed.String()
		if r.limit > 0 {
			text += " of " + r.limit.String()
		}
	}
	if r.line != "" {
		text += ": " + r.line
	}
	fmt.Fprintf(p.w, "%s\x1b[K\r", p.paintText("2", terminal.EscapePart(text, maxShown)))
}

// OutputPrinter returns the function that takes what a step prints while it runs, or nil where that
// is not shown.
func (p Progress) OutputPrinter() func(proposal.Chunk) {
	if !p.on {
		return nil
	}
	return func(c proposal.Chunk) {
		lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(c.Data), "?"), " \t\r\n"), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
			p.run.mu.Lock()
			p.run.line = terminal.EscapePart(last, maxShown)
			p.run.mu.Unlock()
		}
	}
}

// longSetup is the time of set-up after which layers are mentioned.
const longSetup = 20 * time.Second

// mentionLayers says once, after long set-up that succeeded and left no layer, that later runs repeat it.
func (p Progress) mentionLayers(s gate.Step) {
	r := p.run
	if s.Result != nil && s.Setup {
		r.setup += time.Duration(s.Result.WallMS) * time.Millisecond
		r.layered = r.layered || !s.Result.Succeeded() || s.Result.Layer != nil && !s.Result.Layer.Private
	}
	if s.Setup || r.setup <= longSetup || r.layered {
		return
	}
	r.layered = true
	p.PrintNotice(fmt.Sprintf("set-up took %s, and no later run begins with what it left: see docs/CACHE.md",
		r.setup.Round(time.Second)))
}

// paintText colors text, if the terminal's user wants colors.
func (p Progress) paintText(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// PrintTest prints which test of a policy runs.
func (p Progress) PrintTest(number, of int, name string) {
	if !p.on {
		return
	}
	if name = terminal.EscapeLine(name); len(name) > 60 {
		name = name[:60]
	}
	fmt.Fprintf(p.w, "\x1b[2K%s\r", p.paintText("2", fmt.Sprintf("[%d/%d] %s", number, of, name)))
	if number == of {
		fmt.Fprint(p.w, "\x1b[2K")
	}
}

// ProposalsPrinter returns a function that prints how many of the proposals are decided. It is
// safe for concurrent use. Without a terminal it is nil.
func (p Progress) ProposalsPrinter(of int) func(done int) {
	if !p.on {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	return func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if done == of {
			fmt.Fprint(p.w, "\x1b[K")
		} else if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			fmt.Fprintf(p.w, "%s\x1b[K\r", p.paintText("2", fmt.Sprintf("fumehood: %d of %d proposals …", done, of)))
		}
	}
}

// describeEnd describes how a command ended, and after what time, or why it did not begin.
func describeEnd(s gate.Step) string {
	if s.Refused {
		return refusedBy(s.Decision)
	}
	r := s.Result
	if r.Status == proposal.NotRun || r.FromLayer() {
		return terminal.EscapeLine(r.Outcome())
	}
	if r.Cached != nil {
		return "succeeded, from cache, run " + terminal.EscapeLine(r.Cached.Run)
	}
	outcome := r.Outcome()
	switch {
	case r.Succeeded():
		outcome = "succeeded"
	case s.Setup && r.Detail != "":
		outcome = terminal.EscapeLine(r.Detail)
	}
	return fmt.Sprintf("%s in %s%s", outcome, (time.Duration(r.WallMS) * time.Millisecond).Round(time.Millisecond),
		refusalText(r))
}

// refusedBy describes a refusal, with its first rule.
func refusedBy(d proposal.Decision) string {
	text := "denied"
	if d.Effect == proposal.Ask {
		text = "needs approval"
	}
	for _, reason := range d.Reasons {
		if reason.Effect == d.Effect && !reason.Observed {
			return text + " by " + terminal.EscapeLine(reason.Rule)
		}
	}
	return text
}

// refusalText returns what a success may hide.
func refusalText(r *proposal.Result) string {
	text := ""
	if a := r.Retried; a != nil {
		text = terminal.EscapeLine(fmt.Sprintf(" in the second run; in the first, %s crashed with %s", a.Program,
			a.Crash))
	}
	if r.Observations == nil {
		return text
	}
	c := r.Observations.Counts
	switch {
	case c.Refused == 1:
		text += ", 1 program refused"
	case c.Refused > 1:
		text += fmt.Sprintf(", %d programs refused", c.Refused)
	}
	if c.NetRefused > 0 {
		text += fmt.Sprintf(", network refused %d×", c.NetRefused)
	}
	return text
}

// stepMark returns the mark of a step, two columns wide as terminals show it.
func (p Progress) stepMark(s gate.Step) string {
	switch {
	case s.Refused && s.Decision.Effect == proposal.Ask:
		return p.paintText("33", "✋")
	case s.Refused:
		return p.paintText("31", "⛔")
	case s.Result.Status == proposal.NotRun:
		return p.paintText("2", "–") + " "
	case s.Result.Succeeded():
		return p.paintText("32", "✓") + " "
	}
	return p.paintText("31", "✗") + " "
}
