// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A verdict is why a proposal did not run.
type verdict struct {
	name  string // PolicyDenied or ApprovalRequired
	lines []string
}

const maxReasons = 4

// reasonsOf returns why r did not run: the rules, their reasons and what is allowed instead.
func reasonsOf(r proposal.Record) verdict {
	v := verdict{name: "PolicyDenied"}
	if r.Decision.Effect == proposal.Ask {
		v.name = "ApprovalRequired"
	}
	for _, x := range r.Decision.Reasons {
		if x.Observed || len(v.lines) >= 3*maxReasons {
			continue
		}
		v.addLine("%s: %s", x.Rule, x.Message)
		if x.Suggestion != "" {
			v.addLine("instead: %s", x.Suggestion)
		}
		for _, a := range x.Alternatives {
			v.addLine("allowed: %s", a)
		}
	}
	if len(v.lines) == 0 {
		v.addLine("no rule allows it")
	}
	return v
}

func (v *verdict) addLine(format string, args ...any) {
	v.lines = append(v.lines, text.Inline(fmt.Sprintf(format, args...), 600))
}

// joinLines is the verdict in one line, for errors.
func (v verdict) joinLines() string { return strings.Join(v.lines, "; ") }

// formatStderr is the verdict as a command's output.
func (v verdict) formatStderr() string {
	head := "fumehood: denied by policy\n"
	if v.name == "ApprovalRequired" {
		head = "fumehood: needs a person's approval, which this client cannot give\n"
	}
	return head + strings.Join(v.lines, "\n") + "\n"
}

// listNotes are what happened to a command, in addition to what it printed: why it was ended,
// what is missing of its output, which programs policy refused.
func listNotes(r proposal.Record) (list []string) {
	add := func(format string, args ...any) {
		list = append(list, "fumehood: "+text.Inline(fmt.Sprintf(format, args...), 600))
	}
	x := r.Result
	if x == nil {
		return nil
	}
	if x.Status != proposal.Exited {
		add("%s", describeEnd(*x))
	} else if x.Detail != "" {
		add("%s", x.Detail)
	}
	if x.NewSandbox { // the first one began with the sandbox's creation
		add("this ran in a new kernel, because the one before had to be ended: files written before are lost")
	}
	for name, s := range map[string]proposal.Stream{"stdout": x.Stdout, "stderr": x.Stderr} {
		if s.Withheld != "" {
			add("%s is withheld: %s", name, s.Withheld)
		}
	}
	if x.Observations != nil {
		for _, p := range x.Observations.Programs {
			if p.Refused > 0 && len(list) < 8 {
				add("policy refused the program %s: %s", p.Name, p.Rule)
			}
		}
	}
	if r.Cause != nil {
		add("could not run: %s", r.Cause.Reason)
	}
	return list
}

// describeEnd says how a command ended that did not exit.
func describeEnd(x proposal.Result) string {
	words := []string{x.Outcome()}
	for _, more := range []string{x.Limit, x.Detail} {
		if more != "" {
			words = append(words, more)
		}
	}
	return strings.Join(words, ", ")
}

// chunk is the size of the parts in which output is sent.
const chunk = 32 << 10

// passStream passes the bytes of a stream on in parts. What is between its beginning and its end is
// read from its file.
func passStream(s proposal.Stream, pass func([]byte)) {
	if !s.Truncated {
		passChunks(append(append([]byte{}, s.Head...), s.Tail...), pass)
		return
	}
	f, err := os.Open(s.File) // our redactor wrote it
	if err != nil {
		passChunks(s.Head, pass)
		pass(fmt.Appendf(nil, "\n[%d bytes are missing]\n", s.Bytes-int64(len(s.Head)+len(s.Tail))))
		passChunks(s.Tail, pass)
		return
	}
	defer f.Close()
	for buffer := make([]byte, chunk); ; {
		n, err := io.ReadFull(f, buffer)
		if n > 0 {
			pass(buffer[:n:n])
		}
		if err != nil {
			break
		}
	}
	if missing := s.Bytes - s.FileBytes; missing > 0 {
		pass(fmt.Appendf(nil, "\n[%d bytes are missing]\n", missing))
	}
}

func passChunks(data []byte, pass func([]byte)) {
	for len(data) > 0 {
		n := cmp.Or(min(len(data), chunk), 1)
		pass(data[:n:n])
		data = data[n:]
	}
}

// A printer passes on what a proposal prints and shows: as it comes, and at the end what did
// not come.
type printer struct {
	mu    sync.Mutex
	print func(stream string, data []byte) // ChunkStdout or ChunkStderr
	show  func(proposal.Display)
	seen  map[string]bool
}

func newPrinter(print func(string, []byte), show func(proposal.Display)) *printer {
	return &printer{print: print, show: show, seen: map[string]bool{}}
}

// printChunk takes what a command shows while it runs.
func (p *printer) printChunk(c proposal.Chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[c.Stream] = true
	if c.Stream == proposal.ChunkDisplay {
		if c.Dropped > 0 {
			p.printNote(fmt.Sprintf("fumehood: %d results are missing: the client reads too slowly", c.Dropped))
		}
		if c.Display != nil {
			p.show(*c.Display)
		}
		return
	}
	if c.Dropped > 0 {
		p.print(c.Stream, fmt.Appendf(nil, "\n[%d bytes are missing: the client reads too slowly]\n", c.Dropped))
	}
	if len(c.Data) > 0 {
		passChunks(c.Data, func(data []byte) { p.print(c.Stream, data) })
	}
}

func (p *printer) printNote(line string) { p.print(proposal.ChunkStderr, []byte(line+"\n")) }

// printRest passes on the rest of r.
func (p *printer) printRest(r proposal.Record) {
	p.mu.Lock() // the last chunk may still be on its way to a slow client
	defer p.mu.Unlock()
	if r.Result == nil {
		return
	}
	for name, s := range map[string]proposal.Stream{proposal.ChunkStdout: r.Result.Stdout,
		proposal.ChunkStderr: r.Result.Stderr} {
		if !p.seen[name] {
			passStream(s, func(data []byte) { p.print(name, data) })
		}
	}
	if !p.seen[proposal.ChunkDisplay] {
		for _, d := range r.Result.Displays {
			p.show(d)
		}
	}
	if n := r.Result.DisplaysOmitted; n > 0 {
		p.printNote(fmt.Sprintf("fumehood: %d results are missing: there are too many", n))
	}
	for _, line := range listNotes(r) {
		p.printNote(line)
	}
}
