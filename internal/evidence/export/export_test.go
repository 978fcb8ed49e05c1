// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// decisionsOf returns the decisions of a log whose key is trusted.
func decisionsOf(t testing.TB, log []byte, o Options) ([]Decision, Story) {
	t.Helper()
	var list []Decision
	known, err := audit.Verify(bytes.NewReader(log), audit.Trust{})
	if err != nil {
		t.Fatal(err)
	}
	story, _, err := Log(bytes.NewReader(log), audit.Trust{Key: known.Key}, o, func(d Decision) error { list = append(list, d); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list, story
}

// A log that was replaced and signed anew verifies with its own key, and the decisions say so.
func TestUntrustedKey(t *testing.T) {
	log, _ := exporttest.WriteLog(t, exporttest.Run{})
	var ends []string
	story, _, err := Log(bytes.NewReader(log), audit.Trust{}, Options{}, func(d Decision) error { ends = append(ends, d.Custom.Log); return nil })
	if err != nil || story.Log != "sealed-untrusted" || len(ends) == 0 || ends[0] != story.Log {
		t.Errorf("%v, %q, %q", err, story.Log, ends)
	}
}

func lines(t testing.TB, list []Decision) []byte {
	t.Helper()
	var all []byte
	for _, d := range list {
		line, err := EncodeLine(d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line...)
	}
	return all
}

// TestGolden compares every decision of a run, byte for byte.
func TestGolden(t *testing.T) {
	log, _ := exporttest.WriteLog(t, exporttest.Run{})
	list, _ := decisionsOf(t, log, Options{})
	golden.Compare(t, "testdata/decisions.jsonl", lines(t, list))
	if bytes.Contains(lines(t, list), []byte("hunter2")) {
		t.Error("the value of a variable or standard input is told")
	}
	all, _ := decisionsOf(t, log, Options{All: true})
	if len(all) != len(list)+1 {
		t.Errorf("with All there are %d decisions, want one more than %d", len(all), len(list))
	}
}

// Exporting twice gives the same result, and a report gives the same ids as the log.
func TestIDs(t *testing.T) {
	log, _ := exporttest.WriteLog(t, exporttest.Run{})
	first, story := decisionsOf(t, log, Options{})
	again, _ := decisionsOf(t, log, Options{})
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	ids := map[string]Decision{}
	for _, d := range first {
		if _, twice := ids[d.DecisionID]; twice {
			t.Errorf("id %s twice", d.DecisionID)
		}
		ids[d.DecisionID] = d
	}
	r := proposal.Report{Run: story.Run}
	for _, s := range story.Steps {
		r.Records = append(r.Records, proposal.Record{Proposal: s.Proposal, Analysis: s.Analysis, Decision: s.Decision, Result: s.Result, Entry: s.Entry})
	}
	n := 0
	if _, err := Report(r, Options{}, func(d Decision) error {
		n++
		same, known := ids[d.DecisionID]
		if !known || same.Path != d.Path || same.Path != PathRun && cmp.Diff(same.Result, d.Result) != "" || cmp.Diff(same.Input, d.Input) != "" {
			t.Errorf("the report's %s %s is not the log's", d.DecisionID, d.Path)
		}
		return nil
	}); err != nil || n != 7 {
		t.Errorf("%d decisions, error %v, want 7", n, err)
	}
}

// Nothing is exported from an altered log. From one that was cut off, the signed part is.
func TestLogsThatAreNotWhole(t *testing.T) {
	whole, a := exporttest.WriteLog(t, exporttest.Run{})
	cut, _ := exporttest.WriteLog(t, exporttest.Run{Cut: true})
	none := func(Decision) error { t.Error("a decision was told"); return nil }
	var wrong *audit.VerifyError
	for name, log := range map[string][]byte{"edited": bytes.Replace(whole, []byte("go.test"), []byte("go.tast"), 1), "text": []byte("hello\n"), "other": []byte("{\"schema\": 1}\n")} {
		if _, _, err := Log(bytes.NewReader(log), audit.Trust{}, Options{}, none); !errors.As(err, &wrong) {
			t.Errorf("%s: error %v, want a VerifyError", name, err)
		}
	}
	if _, _, err := Log(bytes.NewReader(whole), audit.Trust{Key: "x+00000000+AAAA"}, Options{}, none); !errors.As(err, &wrong) {
		t.Errorf("with another key: error %v, want a VerifyError", err)
	}
	if _, _, err := Log(bytes.NewReader(whole[:len(whole)-300]), audit.Trust{Checkpoint: a.Checkpoint}, Options{}, none); !errors.As(err, &wrong) {
		t.Errorf("cut before the checkpoint that is known: error %v, want a VerifyError", err)
	}
	if _, _, err := Log(bytes.NewReader(nil), audit.Trust{}, Options{}, none); err == nil || proposal.FailureOf(err).Code != "export.no-run" {
		t.Errorf("an empty log: error %v, want export.no-run", err)
	}
	list, story := decisionsOf(t, cut, Options{})
	if len(list) == 0 || story.Log != "unsealed" || list[0].Custom.Log != "unsealed" || story.Totals != nil {
		t.Errorf("cut off: %d decisions, log %q", len(list), story.Log)
	}
	if s := story.Steps[0]; s.Result != nil || s.Started.IsZero() || s.Ended.Before(s.Started) {
		t.Errorf("cut off: the first step is %+v", s)
	}
}

// An entry that was never acknowledged proves nothing and is not exported.
func TestTornEntry(t *testing.T) {
	cut, _ := exporttest.WriteLog(t, exporttest.Run{Cut: true})
	whole, _ := decisionsOf(t, cut, Options{})
	end := bytes.LastIndexByte(cut[:len(cut)-1], '\n')
	torn, _ := decisionsOf(t, cut[:end+1], Options{})
	if len(torn) >= len(whole) {
		t.Errorf("without the last checkpoint %d decisions are told, with it %d", len(torn), len(whole))
	}
}

// A log that changes while it is read is detected, although the first read verified.
func TestLogThatChanges(t *testing.T) {
	whole, _ := exporttest.WriteLog(t, exporttest.Run{})
	cut, _ := exporttest.WriteLog(t, exporttest.Run{Cut: true})
	_, _, err := Log(&changing{first: bytes.NewReader(whole), then: bytes.NewReader(cut)}, audit.Trust{}, Options{}, func(Decision) error { return nil })
	if f := proposal.FailureOf(err); f == nil || f.Code != "export.changed" {
		t.Errorf("error %v, want export.changed", err)
	}
}

type changing struct{ first, then *bytes.Reader }

func (c *changing) Read(b []byte) (int, error) { return c.first.Read(b) }
func (c *changing) Seek(int64, int) (int64, error) {
	c.first = c.then
	return 0, nil
}

// Whatever untrusted authors write, a decision is one bounded, printable line.
func TestHostileText(t *testing.T) {
	lanetest.SkipShort(t)
	for _, name := range sample.EveryNthKey(t, hostile(), 1, 3) {
		t.Run(name, func(t *testing.T) {
			for _, d := range hostileDecisions(t, name) {
				line, err := EncodeLine(d)
				if err != nil {
					t.Fatal(err)
				}
				checkLine(t, line)
			}
		})
	}
}

// hostileDecisions returns the decisions of a run with a hostile text everywhere, which it makes once.
func hostileDecisions(t *testing.T, name string) []Decision {
	t.Helper()
	if made[name] == nil {
		log, _ := exporttest.WriteLog(t, exporttest.Run{Text: hostile()[name]})
		made[name], _ = decisionsOf(t, log, Options{All: true})
	}
	return made[name]
}

var made = map[string][]Decision{}

func hostile() map[string]string {
	return map[string]string{
		"newline":  "a\nb\r\n::error::x\n##[error]x",
		"controls": "\x00\x1b[31m\x07\x7f\u0085",
		"bidi":     "\u202ecod\u202c\u200b\ufeff",
		"invalid":  "\xff\xfe\xc0",
		"long":     strings.Repeat("x", 60<<10),
		"escaped":  strings.Repeat("\x01", 60<<10),
		"wide":     strings.Repeat("😀", 10<<10),
	}
}

func checkLine(t *testing.T, line []byte) {
	t.Helper()
	var d Decision
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	body := string(bytes.TrimSuffix(line, []byte("\n")))
	if len(line) > MaxLine || strings.ContainsFunc(body, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(body) || strings.Contains(body, "##[") {
		t.Errorf("line of %d bytes: %.300q", len(line), line)
	}
	if d.DecisionID == "" || d.Custom.Schema != Schema || d.Timestamp.IsZero() {
		t.Errorf("line has no id, schema or time: %.300q", line)
	}
}

// A decision that is too large loses its input, and erased lists it.
func TestLargeDecision(t *testing.T) {
	lanetest.SkipShort(t)
	many := func(n int) (l []string) {
		for range n {
			l = append(l, strings.Repeat("\x02", 4000))
		}
		return l
	}
	var reasons []proposal.Reason
	for range 200 {
		reasons = append(reasons, proposal.Reason{Rule: many(1)[0], Message: many(1)[0], Suggestion: many(1)[0], Text: many(1)[0], Alternatives: many(90)})
	}
	p := proposal.Proposal{ID: many(1)[0], Argv: many(500), Outputs: many(64), Network: many(64), Needs: many(64), Env: map[string]string{many(1)[0]: "x"}}
	d := proposal.Decision{Rules: many(500), Reasons: reasons, Grant: &proposal.Grant{Network: many(100)}}
	if _, err := Report(proposal.Report{Run: proposal.Run{ID: many(1)[0], Proposer: many(1)[0], Repository: many(1)[0], HeadSHA: many(1)[0]},
		Records: []proposal.Record{{Proposal: p, Decision: d}}}, Options{}, func(d Decision) error {
		d.Timestamp = time.Unix(1, 0)
		line, err := EncodeLine(d)
		if err != nil {
			return err
		}
		checkLine(t, line)
		if d.Path != PathRun && !bytes.Contains(line, []byte(`"erased":["/input"`)) {
			t.Errorf("it does not say that the input was erased: %.200q", line)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestTraceOf(t *testing.T) {
	made := TraceOf("", "run")
	for parent, joins := range map[string]bool{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       true,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00":       true,
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later": true, // a later version may have more fields
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more":  false,
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":       false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":       false,
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01":       false,
		"": false,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n": false,
	} {
		if got := TraceOf(parent, "run"); (got != made) != joins || !joins && got.Parent != [8]byte{} {
			t.Errorf("%q: %x, joins must be %v", parent, got, joins)
		}
	}
	if made == TraceOf("", "other") || made != TraceOf("", "run") {
		t.Error("a trace's id must be the run's, and the same each time")
	}
}

// FuzzText checks that a truncated text keeps its bound and is valid UTF-8.
func FuzzText(f *testing.F) {
	for _, s := range hostile() {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + max(0, limit)%5000
		got := TruncateText(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%d bytes of %d: %q", len(got), limit, got)
		}
		if len(s) <= limit && utf8.ValidString(s) && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

// FuzzLog: whatever is in signed entries, each decision becomes one line.
func FuzzLog(f *testing.F) {
	whole, _ := exporttest.WriteLog(f, exporttest.Run{})
	for line := range bytes.Lines(whole) {
		var e struct {
			Leaf struct {
				Kind string          `json:"kind"`
				Body json.RawMessage `json:"body"`
			} `json:"entry"`
		}
		if json.Unmarshal(line, &e) == nil && e.Leaf.Kind != "" {
			f.Add(e.Leaf.Kind, []byte(e.Leaf.Body))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		r := reader{emitter: emitter{each: func(d Decision) error {
			line, err := EncodeLine(d)
			if err != nil {
				return err
			}
			if len(line) > MaxLine {
				t.Errorf("line of %d bytes", len(line))
			}
			return nil
		}}}
		_ = r.handleEntry(audit.Entry{Kind: "run", Body: []byte(`{"id":"r"}`), Time: exporttest.Start})
		_ = r.handleEntry(audit.Entry{N: 1, Kind: "decision", Body: []byte(`{"id":"a","proposal":{"id":"a"},"analysis":{},"decision":{}}`), Time: exporttest.Start})
		if err := r.handleEntry(audit.Entry{N: 2, Kind: kind, Body: body, Time: exporttest.Start}); err != nil && proposal.FailureOf(err).Code != "export.runs" {
			t.Error(err)
		}
	})
}

// TestDecidingFirst: the first rule of a denial is one that denies, whatever its name.
func TestDecidingFirst(t *testing.T) {
	d := proposal.Decision{Effect: proposal.Deny, Rules: []string{"a.allow", "b.ask", "c.seen", "y.deny", "z.deny"}, Reasons: []proposal.Reason{
		{Rule: "c.seen", Effect: proposal.Deny, Observed: true}, {Rule: "b.ask", Effect: proposal.Ask}, {Rule: "z.deny", Effect: proposal.Deny}, {Rule: "y.deny", Effect: proposal.Deny}}}
	got := resultOf(d, false)
	if diff := cmp.Diff([]string{"z.deny", "y.deny", "a.allow", "b.ask", "c.seen"}, got.Rules); diff != "" {
		t.Error(diff)
	}
	if got.Reasons[0].Rule != "z.deny" || got.Reasons[3].Rule != "c.seen" {
		t.Errorf("reasons %+v", got.Reasons)
	}
	d.Effect = proposal.Ask
	if got := resultOf(d, false); got.Rules[0] != "b.ask" {
		t.Errorf("of a question: %v", got.Rules)
	}
}

// TestSeverity: the worst severity of the rules that deny counts. Without one it follows from
// what was decided, and rules that only ask or were only observed change nothing.
func TestSeverity(t *testing.T) {
	of := func(e proposal.Effect, severity string, observed bool) proposal.Reason {
		return proposal.Reason{Effect: e, Severity: severity, Observed: observed}
	}
	for name, c := range map[string]struct {
		path, effect string
		reasons      []proposal.Reason
		want         string
	}{
		"the worst":      {PathCommand, Deny, []proposal.Reason{of(proposal.Deny, "low", false), of(proposal.Deny, "critical", false), of(proposal.Deny, "", false)}, Critical},
		"below default":  {PathExec, Deny, []proposal.Reason{of(proposal.Deny, "low", false)}, Low},
		"of no rule":     {PathExec, Deny, []proposal.Reason{of(proposal.Deny, "", false)}, High},
		"only asks":      {PathCommand, Deny, []proposal.Reason{of(proposal.Ask, "critical", false), of(proposal.Deny, "", false)}, Medium},
		"only observed":  {PathCommand, Deny, []proposal.Reason{of(proposal.Deny, "critical", true), of(proposal.Deny, "", false)}, Medium},
		"a question":     {PathCommand, Ask, []proposal.Reason{of(proposal.Ask, "critical", false)}, Low},
		"allowed anyway": {PathCommand, Allow, []proposal.Reason{of(proposal.Deny, "critical", true)}, Informational},
	} {
		if got := worstSeverity(Decision{Path: c.path, Result: Result{Effect: c.effect, Reasons: c.reasons}}); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
