// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/replay"
)

func policySuggestDoor() *door {
	return &door{
		name:     "policy suggest",
		synopsis: "write the rules that allow what past runs ran, for a person to judge",
		usage: `LOG|FOLDER… [flags]

Reads audit logs and writes a policy by tool, with hosts and cases: used with
--organisation, it refuses everything else, and the default policy still refuses what it
refuses. What nothing was suggested for is said, with the reason.

examples:
  fumehood policy suggest ~/.local/state/fumehood --out seen
  fumehood policy test --organisation seen
  fumehood run --plan plan.yaml --policy seen --observe     on trial: nothing is refused by it
  fumehood run --plan plan.yaml --organisation seen         held
  fumehood policy suggest audit.jsonl --json | jq '.left'
`,
		run: suggestPolicy,
	}
}

// A judging engine describes commands too.
type judging struct{ *policy.Engine }

func (j judging) Commands(p proposal.Proposal, a proposal.Analysis) ([][]byte, error) {
	var all [][]byte
	for _, d := range j.Documents(p, a) {
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

func suggestPolicy(c *call) int {
	var policies chosen
	var of reading
	var wanted replay.Wanted
	var out string
	var asJSON bool
	f := c.flags()
	policies.define(f)
	of.define(f)
	f.BoolVar(&wanted.Refused, "refused", false, "also suggest rules for commands that were refused only because no rule knows them")
	f.IntVar(&wanted.AtLeast, "at-least", 1, "leave out commands that were seen less than `N` times")
	f.StringVar(&out, "out", "", "write the policy to this new `folder` (default: print it)")
	f.BoolVar(&asJSON, "json", false, "print the suggestion and its files as JSON")
	paths, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return c.misuse("policy suggest needs a log or a folder of them")
	}
	past, s, err := c.suggestion(paths, of, wanted, &policies)
	if err == nil && out != "" {
		err = writeSuggestion(out, s.Files())
	}
	if err != nil {
		return c.stopped(err)
	}
	c.tellPast(replay.Past{Left: past.Left})
	return c.tellSuggestion(s, out, asJSON)
}

// suggestion makes one and holds it to its promise.
func (c *call) suggestion(paths []string, of reading, wanted replay.Wanted, policies *chosen) (replay.Past, replay.Suggestion, error) {
	engine, err := policies.engine(c.ctx, false)
	if err != nil {
		return replay.Past{}, replay.Suggestion{}, err
	}
	past, err := of.read(paths)
	if err != nil {
		return past, replay.Suggestion{}, err
	}
	s, err := replay.Suggest(c.ctx, past, judging{engine}, wanted)
	if err != nil {
		return past, s, err
	}
	if len(s.Rules) == 0 {
		c.tellLeft(s.Left)
		return past, s, &proposal.StopError{Code: "suggest.empty", Message: "nothing ran of which a rule could be made", Hint: "name logs of runs in which commands ran"}
	}
	layers, err := policies.read(c.ctx)
	if err != nil {
		return past, s, err
	}
	files := s.Files()
	suggested := policy.Layer{Name: "suggested", Role: policy.Allows}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		suggested.Files = append(suggested.Files, policy.File{Name: name, Content: files[name]})
	}
	with, err := newEngine(c.ctx, policy.Options{Layers: append(layers, suggested)})
	if err != nil {
		return past, s, err
	}
	return past, s, s.Hold(c.ctx, with, gate.Analyze)
}

func writeSuggestion(out string, files map[string][]byte) error {
	if err := os.Mkdir(out, 0o755); err != nil {
		hint := "name a new folder with --out"
		if !errors.Is(err, fs.ErrExist) {
			hint = "name a folder that can be made with --out"
		}
		return &proposal.StopError{Code: "suggest.not-writable", Message: fmt.Sprintf("cannot make the folder %q", out), Hint: hint, Err: err}
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if dir := path.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tellLeft says each reason once.
func (c *call) tellLeft(left []replay.Left) {
	first, times := map[string]replay.Left{}, map[string]int{}
	var order []string
	for _, l := range left {
		if times[l.Why]++; times[l.Why] == 1 {
			first[l.Why], order = l, append(order, l.Why)
		}
	}
	for _, why := range order {
		fmt.Fprintf(c.stderr, "fumehood: %s left out, the first %s of run %s: %s\n", counted(times[why], "proposal"), shown(first[why].ID, 64), shown(first[why].Source, 64), shown(why, 300))
	}
}

func (c *call) tellSuggestion(s replay.Suggestion, out string, asJSON bool) int {
	files := s.Files()
	if asJSON {
		texts := map[string]string{}
		for name, content := range files {
			texts[name] = string(content)
		}
		data, err := json.Marshal(struct {
			Schema string `json:"schema"`
			replay.Suggestion
			Files map[string]string `json:"files"`
		}{"fumehood.suggestion/v1", s, texts})
		if err == nil {
			_, err = c.stdout.Write(append(replay.Inert(data), '\n'))
		}
		if err != nil {
			return c.stopped(err)
		}
		return exitOK
	}
	c.tellLeft(s.Left)
	if out == "" {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(c.stdout, "# file: %s\n%s\n", name, files[name])
		}
		return exitOK
	}
	fmt.Fprintf(c.stdout, "%s and %s from %s, in %s; %s left out\n", counted(len(s.Rules), "rule"), counted(len(s.Hosts), "host"), counted(s.Runs, "run"), printable(out), counted(len(s.Left), "proposal"))
	fmt.Fprintf(c.stdout, "read each rule, then: fumehood policy test --organisation %s\n", printable(out))
	return exitOK
}
