// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure how the past is read.
type Options struct {
	// Parse is the parser that runs use.
	Parse func(proposal.Proposal) proposal.Analysis
	// Key is the verifier key that every log must be signed with; "" trusts each
	// log's own key.
	Key string
	// Unverified also uses the entries before the fault of a log that does not verify.
	Unverified bool
}

// The codes of this package's StopErrors.
const (
	codeUnreadable = "replay.unreadable"
	codeUnverified = "replay.unverified"
	codeMalformed  = "replay.malformed"
	codeTooLarge   = "replay.too-large"
	codeEmpty      = "replay.empty"
)

func newStopError(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}

// Read reads logs, reports, and directories of them. If a run has both a log and a
// report, the log is used. Errors are StopErrors.
func Read(paths []string, o Options) (Past, error) {
	past := Past{parse: o.Parse, known: map[string]map[[sha256.Size]byte]bool{}}
	logs, reports, err := findSources(paths)
	if err != nil {
		return past, err
	}
	for _, path := range logs {
		if err := past.readFile(path, o, past.readLog); err != nil {
			return past, err
		}
	}
	for _, path := range reports {
		if err := past.readFile(path, o, past.readReport); err != nil {
			return past, err
		}
	}
	if past.acts == 0 {
		return past, newStopError(codeEmpty, "the files contain no proposal",
			"name audit logs of runs, their reports, or a directory with them", nil)
	}
	return past, nil
}

// findSources distinguishes logs and reports.
func findSources(paths []string) (logs, reports []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, unreadableError(path, err)
		}
		found := []string{path}
		if info.IsDir() {
			if found, err = filesIn(path); err != nil {
				return nil, nil, unreadableError(path, err)
			}
		}
		for _, file := range found {
			switch isLog, isReport, err := kindOf(file); {
			case err != nil:
				return nil, nil, unreadableError(file, err)
			case isLog:
				logs = append(logs, file)
			case isReport:
				reports = append(reports, file)
			case !info.IsDir():
				return nil, nil, newStopError(codeMalformed,
					fmt.Sprintf("%q is neither an audit log nor a report", file),
					"name the audit.jsonl or the report of a run", nil)
			}
		}
	}
	return logs, reports, nil
}

func unreadableError(path string, err error) error {
	return newStopError(codeUnreadable, fmt.Sprintf("cannot read %q", path),
		"name the audit.jsonl or the report of a run, or a directory with them", err)
}

// filesIn lists possible logs and reports below dir. Links are not followed.
func filesIn(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(path); d.Type().IsRegular() && (ext == ".jsonl" || ext == ".json") {
			if files = append(files, path); len(files) > maxRuns {
				return fmt.Errorf("holds more than %d files", maxRuns)
			}
		}
		return nil
	})
	return files, err
}

// kindOf determines the kind of a file from its beginning.
func kindOf(path string) (isLog, isReport bool, err error) {
	f, err := openRegular(path)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	head, err := bufio.NewReaderSize(f, 4096).Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, false, err
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.HasPrefix(first, []byte(`{"key":`)) && bytes.Contains(first, []byte(`"schema":"fumehood.audit/v1"`)) {
		return true, false, nil
	}
	return false, bytes.Contains(head, []byte(proposal.ReportSchema)), nil
}

// openRegular opens only regular files: reading a pipe might never end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

func (p *Past) readFile(path string, o Options, read func(*os.File, string, Options) error) error {
	f, err := openRegular(path)
	if err != nil {
		return unreadableError(path, err)
	}
	defer f.Close()
	return read(f, path, o)
}

// readLog adds the run of one audit log.
func (p *Past) readLog(f *os.File, path string, o Options) error {
	t := logReader{past: p, run: Run{Source: path}, parse: o.Parse}
	summary, err := audit.Scan(f, audit.Trust{Key: o.Key}, t.readEntry)
	if own := (*proposal.StopError)(nil); errors.As(err, &own) {
		return err
	}
	if err != nil && !o.Unverified {
		return newStopError(codeUnverified, fmt.Sprintf("the log %q does not verify", path),
			"run fumehood verify for the reason, or use --unverified to read the entries before the fault", err)
	}
	t.run.Verified, t.run.Sealed = err == nil, summary.State == audit.Sealed
	return p.addRun(t.run)
}

// addRun adds a run unless its facts are already known. A run with a known id but
// other facts is added as a separate run: otherwise, the author of a log could hide
// another run of the same id.
func (p *Past) addRun(r Run) error {
	switch {
	case r.ID == "":
		p.addLeft(r.Source, "", "it contains no run")
	case p.hasRun(r): // the run's log, or another copy
	case len(p.Runs) >= maxRuns:
		return tooLarge()
	default:
		p.rememberFacts(r)
		p.Runs = append(p.Runs, r)
	}
	return nil
}

// hasRun reports whether the known runs with r's id include all facts of r.
func (p *Past) hasRun(r Run) bool {
	known := p.known[r.ID]
	return known != nil && !slices.ContainsFunc(r.factDigests(),
		func(one [sha256.Size]byte) bool { return !known[one] })
}

func (p *Past) rememberFacts(r Run) {
	if p.known[r.ID] == nil {
		p.known[r.ID] = map[[sha256.Size]byte]bool{}
	}
	for _, one := range r.factDigests() {
		p.known[r.ID][one] = true
	}
}

// describeRun copies to r what a log or report says of the run.
func (p *Past) describeRun(r *Run, of proposal.Run) error {
	r.ID, r.Observed, r.NetworkObserved = of.ID, of.Mode == "observe", of.NetworkObserved
	r.Context = proposal.Context{Started: points.FormatStarted(of.Start)}
	if of.Context != nil {
		r.Context = *of.Context
	}
	size := 0
	for _, text := range slices.Concat(r.Context.Changed.Paths, r.Context.Labels) {
		size += len(text) + 16
	}
	return p.reserveRoom(0, size)
}

// factDigests returns the digests of r's facts, each with its proposal.
func (r Run) factDigests() [][sha256.Size]byte {
	var all [][sha256.Size]byte
	add := func(of ...any) {
		data, err := json.Marshal(of)
		if err != nil {
			panic("replay: internal error: decoded JSON cannot be encoded: " + err.Error())
		}
		all = append(all, sha256.Sum256(data))
	}
	add("context", r.Context)
	for _, d := range r.Acts {
		add("proposal", d.Proposal, d.Decision.Effect, d.Approved)
		for _, x := range d.Execs {
			add("exec", d.Proposal.ID, x.Exec, x.Decision.Effect)
		}
		for _, f := range d.Flows {
			add("egress", d.Proposal.ID, f.Egress, f.Decision.Effect)
		}
	}
	return all
}

func (p *Past) addLeft(source, id, why string) { p.Left = append(p.Left, Left{source, id, why}) }

func tooLarge() error {
	return newStopError(codeTooLarge, "the files contain too many runs or proposals",
		fmt.Sprintf("read fewer logs at once: at most %d runs and %d proposals", maxRuns, maxActs), nil)
}

// reserveRoom counts what is held and enforces the limits.
func (p *Past) reserveRoom(acts int, bytes int) error {
	p.acts, p.held = p.acts+acts, p.held+int64(bytes)
	if p.acts > maxActs || p.held > maxHeld {
		return tooLarge()
	}
	return nil
}

// A logReader handles the entries of one log.
type logReader struct {
	past  *Past
	run   Run
	parse func(proposal.Proposal) proposal.Analysis
	at    map[string]int // index in Acts, by proposal
}

func (t *logReader) readEntry(e audit.Entry) error {
	if e.Unsigned {
		return nil
	}
	h, err := journal.Entry{Kind: e.Kind, Body: e.Body}.Decode()
	if err != nil {
		t.past.addLeft(t.run.Source, "", fmt.Sprintf("this version does not know the kind of entry %d", e.N))
		return nil
	}
	i, known := t.at[h.ID]
	switch {
	case h.Run != nil:
		return t.past.describeRun(&t.run, *h.Run)
	case h.Proposal != nil:
		return t.readDecision(h, len(e.Body))
	case !known:
	case e.Kind == "start":
		t.run.Acts[i].Ran = true
	case e.Kind == "events":
		before := t.run.Acts[i].countHeld()
		t.run.Acts[i].addEvents(h.Events)
		if t.run.NetworkObserved {
			t.run.Acts[i].addTried(h.Events)
		}
		t.run.Acts[i].Omitted += h.Flows
		if t.run.Acts[i].countHeld() > before {
			return t.past.reserveRoom(0, len(e.Body))
		}
	}
	return nil
}

func (t *logReader) readDecision(h journal.LogEvent, size int) error {
	if why := noReplayReason(*h.Proposal); why != "" {
		t.past.addLeft(t.run.Source, h.ID, why)
		return nil
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.at[h.ID] = len(t.run.Acts)
	t.run.Acts = append(t.run.Acts,
		Act{Proposal: *h.Proposal, Analysis: t.parse(*h.Proposal), Decision: *h.Decision, Approved: h.Approved})
	return t.past.reserveRoom(1, 3*size)
}

// readReport adds the run of one report.
func (p *Past) readReport(f *os.File, path string, o Options) error {
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return unreadableError(path, err)
	}
	r, err := report.Read(data, maxReport)
	if err != nil {
		return newStopError(codeMalformed, fmt.Sprintf("%q is not a report", path), "name the report.json of a run",
			err)
	}
	run := Run{Source: path}
	if err := p.describeRun(&run, r.Run); err != nil {
		return err
	}
	for _, rec := range r.Records {
		why := noReplayReason(rec.Proposal)
		if len(rec.Redacted) > 0 {
			why = whyRedacted
		}
		if why != "" {
			p.addLeft(path, rec.Proposal.ID, why)
			continue
		}
		d := Act{Proposal: rec.Proposal, Analysis: o.Parse(rec.Proposal), Decision: rec.Decision,
			Approved: rec.Approved()}
		if rec.Result != nil && rec.Result.Status != proposal.NotRun {
			d.Ran = true
			if seen := rec.Result.Observations; seen != nil {
				d.addEvents(seen.Execs)
				for _, reach := range seen.Network {
					if run.NetworkObserved {
						d.addReach(reach)
					}
				}
				// a report has only their counts
				d.Omitted += seen.Counts.Lookups + seen.Counts.Connections + seen.Counts.Requests
			}
		}
		run.Acts = append(run.Acts, d)
	}
	if err := p.reserveRoom(len(run.Acts), len(data)); err != nil {
		return err
	}
	return p.addRun(run)
}

// maxText is above the limit of a plan.
const maxText = 1 << 20

const whyRedacted = "a secret was redacted from it, so the original cannot be decided again"

// noReplayReason returns the reason why a past proposal cannot be decided again, or "".
func noReplayReason(p proposal.Proposal) string {
	forms := 0
	for _, set := range []bool{p.Run != "", len(p.Argv) > 0, p.Code != ""} {
		if set {
			forms++
		}
	}
	switch {
	case p.Invalid != nil:
		return "it was refused when the plan was read"
	case p.ID == "" || forms != 1:
		return "its proposal is invalid"
	case strings.Contains(strings.Join(append([]string{p.ShellText(), p.Stdin, p.Cwd}, p.Argv...), " "), "[redacted "):
		return whyRedacted
	case len(p.ShellText())+len(strings.Join(p.Argv, " ")) > maxText:
		return "its proposal is longer than allowed"
	}
	return ""
}
