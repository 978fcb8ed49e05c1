// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Engine is a Describer.
type Engine struct{ *policy.Engine }

// Commands returns the input documents of p's commands.
func (e Engine) Commands(p proposal.Proposal, a proposal.Analysis) ([][]byte, error) {
	var all [][]byte
	for _, d := range e.Documents(p, a) {
		if d.Command < 0 {
			continue
		}
		data, err := d.JSON()
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// A Policy makes the engines of SuggestUnder, and parses proposals for them.
type Policy struct {
	Layers []policy.Layer
	New    func(context.Context, policy.Options) (*policy.Engine, error) // policy.New, or like it
	Parse  func(proposal.Proposal) proposal.Analysis
}

// SuggestUnder is Suggest with p as the policy of today. It returns a suggestion only if p and the
// suggestion together allow what they must. Its error is a *proposal.StopError: suggest.empty, with
// a Suggestion whose Notes say why, suggest.defect, or one of p.New's.
func SuggestUnder(ctx context.Context, past Past, p Policy, w Wanted) (Suggestion, error) {
	engine, err := p.New(ctx, policy.Options{Layers: p.Layers})
	if err != nil {
		return Suggestion{}, err
	}
	s, err := Suggest(ctx, past, Engine{Engine: engine}, w)
	if err == nil {
		err = s.CheckAny()
	}
	if err != nil || !s.HasRules() {
		return s, err
	}
	with, err := p.New(ctx, policy.Options{Layers: append(slices.Clone(p.Layers), s.Layer())})
	if err != nil {
		return s, err
	}
	return s, s.CheckStillAllowed(ctx, with, p.Parse)
}

// CheckAny returns a StopError when nothing is suggested.
func (s Suggestion) CheckAny() error {
	if len(s.Rules)+len(s.Tried) > 0 {
		return nil
	}
	return newStopError("suggest.empty", "no command ran from which a rule could be made",
		"name logs of runs in which commands ran", nil)
}

// HasRules reports whether the suggestion has a rule, and not only hosts to judge.
func (s Suggestion) HasRules() bool { return len(s.Rules)+len(s.Hosts) > 0 }

// Next says what to do with the suggestion in dir.
func (s Suggestion) Next(dir string) string {
	if !s.HasRules() {
		return "judge each host in proposal/tried.rego"
	}
	return "review each rule, then run: fumehood policy test --organization " + dir
}

// Layer returns the suggestion as an organization's layer of policy.
func (s Suggestion) Layer() policy.Layer {
	files := s.Files()
	l := policy.Layer{Name: "suggested", Role: policy.Allows}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		l.Files = append(l.Files, policy.File{Name: name, Content: files[name]})
	}
	return l
}

// Write writes the suggestion to dir, which must be new.
func (s Suggestion) Write(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		hint := "name a new directory with --out"
		if !errors.Is(err, fs.ErrExist) {
			hint = "name a directory that can be created with --out"
		}
		return newStopError("suggest.not-writable", fmt.Sprintf("cannot make the directory %q", dir), hint, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range s.Layer().Files {
		if err := root.MkdirAll(path.Dir(f.Name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(f.Name, f.Content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Print writes all files one after the other, each below a comment with its name.
func (s Suggestion) Print(w io.Writer) {
	for _, f := range s.Layer().Files {
		fmt.Fprintf(w, "# file: %s\n%s\n", f.Name, f.Content)
	}
}

// JSON returns the suggestion and its files as one line that is safe for a terminal.
func (s Suggestion) JSON() ([]byte, error) {
	texts := map[string]string{}
	for name, content := range s.Files() {
		texts[name] = string(content)
	}
	data, err := json.Marshal(struct {
		Schema string `json:"schema"`
		Suggestion
		Files map[string]string `json:"files"`
	}{"fumehood.suggestion/v1", s, texts})
	if err != nil {
		return nil, err
	}
	return append(text.EscapeJSON(data), '\n'), nil
}

// CountMade counts what is suggested: "2 rules and 1 host from 3 runs".
func (s Suggestion) CountMade() string {
	tried := ""
	if len(s.Tried) > 0 {
		tried = fmt.Sprintf(", %s to judge", countNoun(len(s.Tried), "tried host"))
	}
	return fmt.Sprintf("%s and %s%s from %s", countNoun(len(s.Rules), "rule"), countNoun(len(s.Hosts), "host"), tried,
		countNoun(s.Runs, "run"))
}

// LeftOut counts the proposals that nothing was suggested for.
func (s Suggestion) LeftOut() string { return countNoun(len(s.Left), "proposal") + " left out" }

// Notes returns a line for each reason why nothing was suggested for proposals.
func (s Suggestion) Notes() []string {
	first, times := map[string]Left{}, map[string]int{}
	var order []string
	for _, l := range s.Left {
		if times[l.Why]++; times[l.Why] == 1 {
			first[l.Why], order = l, append(order, l.Why)
		}
	}
	var lines []string
	for _, why := range order {
		lines = append(lines, fmt.Sprintf("%s left out, the first %s of run %s: %s", countNoun(times[why], "proposal"),
			terminal.EscapePart(first[why].ID, 64), terminal.EscapePart(first[why].Source, 64),
			terminal.EscapePart(why, 300)))
	}
	return lines
}
