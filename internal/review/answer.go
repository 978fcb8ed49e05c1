// SPDX-License-Identifier: Apache-2.0

package review

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// answerSchema is the JSON Schema of a model's answer, in the subset that all providers know.
// What it cannot say is checked when the answer is decoded.
//
//go:embed answer.json
var answerSchema []byte

const (
	maxAnswered = 256 << 10 // bytes of an answer
	maxAsked    = 20        // commands of a round
	maxFound    = 20        // findings: each needs up to seven sandboxes
	maxMistakes = 20        // that are returned to the model
)

// encodedAnswer is an answer as the schema has it.
type encodedAnswer struct {
	Done     bool `json:"done"`
	Commands []struct {
		Run string `json:"run"`
		Why string `json:"why"`
	} `json:"commands"`
	Findings []map[string]any `json:"findings"`
	Tests    []struct {
		Run string `json:"run"`
	} `json:"tests"`
}

// An answer is what a model asked for and claims, decoded. All of it is untrusted.
type answer struct {
	done     bool
	commands []proposal.Proposal
	findings proposal.ReviewFindings
	mistakes []string // for the model; text of the answer in it is quoted
}

// decodeAnswer reads the answer of a round. The error says what is wrong with the whole; what
// is wrong with a part of it is in mistakes, and that part is not used.
func decodeAnswer(data string, round int, reviewer string) (a answer, err error) {
	if len(data) > maxAnswered {
		return a, fmt.Errorf("the answer has %d bytes, more than %d", len(data), maxAnswered)
	}
	var in encodedAnswer
	if strictjson.Decode([]byte(data), &in) != nil {
		return a, errors.New("the answer is not one JSON object that fits the schema")
	}
	if len(in.Commands) > maxAsked || len(in.Findings) > maxFound {
		return a, fmt.Errorf("at most %d commands and %d findings are used; the answer has %d and %d", maxAsked,
			maxFound, len(in.Commands), len(in.Findings))
	}
	a.done = in.Done
	if err := a.addCommands(in, round); err != nil {
		return a, err
	}
	return a, a.addFindings(in, reviewer)
}

// addCommands decodes the commands as a plan, so that nothing runs that a plan could not have.
func (a *answer) addCommands(in encodedAnswer, round int) error {
	if len(in.Commands) == 0 {
		return nil
	}
	list := []map[string]any{}
	for i, c := range in.Commands {
		list = append(list, map[string]any{"id": fmt.Sprintf("round-%d-%d", round, i+1), "run": c.Run, "why": c.Why})
	}
	document, err := json.Marshal(map[string]any{"schema": proposal.PlanSchema, "proposals": list})
	if err != nil {
		return err
	}
	decoded, problems := plan.Decode(document, "answer.json")
	if len(problems) > 0 {
		return errors.New("the commands cannot be read: " + problems[0].String())
	}
	for _, p := range decoded.Proposals {
		if p.Invalid == nil {
			a.commands = append(a.commands, p)
		}
	}
	a.addMistakes(decoded.Refused())
	return nil
}

// addFindings decodes the findings and tests as a document of findings.
func (a *answer) addFindings(in encodedAnswer, reviewer string) error {
	for _, f := range in.Findings {
		if f["suggestion"] == nil {
			delete(f, "suggestion") // an empty one removes lines; null is none
		}
	}
	fields := map[string]any{"schema": proposal.FindingsSchema, "reviewer": reviewer, "findings": in.Findings}
	if in.Findings == nil {
		fields["findings"] = []string{}
	}
	if len(in.Tests) > 0 {
		fields["tests"] = in.Tests
	}
	document, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	found, problems := plan.DecodeFindings(document, "answer.json")
	if len(problems) > 0 {
		return errors.New("the findings cannot be read: " + problems[0].String())
	}
	a.findings = found
	for _, f := range found.Findings {
		if f.Invalid != nil {
			a.addMistakes(f.Invalid.Problems)
		}
	}
	return nil
}

func (a *answer) addMistakes(problems []proposal.Problem) {
	for _, p := range problems {
		if len(a.mistakes) < maxMistakes {
			a.mistakes = append(a.mistakes, p.String())
		}
	}
}
