// SPDX-License-Identifier: Apache-2.0

// Package question builds a question to policy from command-line arguments: a proposal, or
// the input of another decision point.
package question

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Command is one proposal in words: shell text, an argv or a snippet.
type Command struct {
	Text           string
	Argv           []string
	Code, Language string
	Cwd, Phase     string
	Network        []string
	Env            []string // NAME=VALUE
}

// Subject returns the proposal. Its error is for the one who wrote the words.
func (c Command) Subject() (Subject, error) {
	if c.Phase != "" && c.Phase != proposal.PhaseSetup && c.Phase != proposal.PhaseRun {
		return Subject{}, errors.New("invalid --phase: want setup or run")
	}
	p := proposal.Proposal{ID: "command", Run: c.Text, Argv: c.Argv, Code: c.Code, Language: c.Language, Cwd: c.Cwd,
		Phase: c.Phase, Network: c.Network}
	for _, e := range c.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok {
			return Subject{}, errors.New("invalid --env: want NAME=VALUE")
		}
		if p.Env == nil {
			p.Env = map[string]string{}
		}
		p.Env[name] = value
	}
	return Subject{Proposals: []proposal.Proposal{p}}, nil
}

// ParseInputs returns ordinary inputs of decision points in which some fields differ, each
// written POINT=JSON. Its error is for the one who wrote them.
func ParseInputs(texts []string) (Subject, error) {
	var s Subject
	for _, text := range texts {
		in, err := trial.ParseInput(text)
		if err != nil {
			return Subject{}, err
		}
		s.Inputs = append(s.Inputs, in)
	}
	return s, nil
}

// A Subject is what policy decides about.
type Subject struct {
	Proposals []proposal.Proposal
	Inputs    []any // of other decision points, as trial.ParseInput returns them
}

// Explain decides each part of s with v. With deep it also explains what nearly matched and
// what would be allowed.
func (s Subject) Explain(ctx context.Context, v *explain.Adviser, deep bool) ([]explain.Explanation, error) {
	ask := v.Evaluate
	if deep {
		ask = v.Explain
	}
	var all []explain.Explanation
	for _, p := range s.Proposals {
		x, err := ask(ctx, p, order.AnalyzeProposal(p))
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	for _, in := range s.Inputs {
		x, err := v.EvaluateInput(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// Documents returns what rules see of s: the inputs of all decision points, or of point if
// it is not empty, with or without the prefix "fumehood.".
func (s Subject) Documents(e *policy.Engine, point string) ([]policy.Document, error) {
	var docs []policy.Document
	for _, p := range s.Proposals {
		docs = append(docs, e.Inputs(p, order.AnalyzeProposal(p))...)
	}
	for _, in := range s.Inputs {
		if doc, ok := e.InputOf(in); ok {
			docs = append(docs, doc)
		}
	}
	if point == "" {
		return docs, nil
	}
	if _, err := policy.InputSchema(point); err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(point, "fumehood.")
	docs = slices.DeleteFunc(docs,
		func(d policy.Document) bool { return strings.TrimPrefix(d.Point, "fumehood.") != name })
	if len(docs) == 0 {
		return nil, fmt.Errorf("the question has no input for %s: try --over '%s={}'", point, name)
	}
	return docs, nil
}
