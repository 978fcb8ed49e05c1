// SPDX-License-Identifier: Apache-2.0

package question

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Arguments are a question as a command line has it: exactly one of a command, an argv, a
// snippet, a plan, or inputs of other decision points.
type Arguments struct {
	Command        string
	IsArgv         bool // the question is Argv, which may be missing
	Argv           []string
	Code, Language string // Code names a file
	Plan, ID       string // Plan names a file; ID is one proposal of it, "" for all
	Trigger        string // names a file with what differs from a typical trigger, JSON
	Over           []string
	Cwd, Phase     string
	Network, Env   []string
}

func (a Arguments) hasInputs() bool { return a.Trigger != "" || len(a.Over) > 0 }

func (a Arguments) hasContext() bool { return a.Cwd+a.Phase != "" || len(a.Network)+len(a.Env) > 0 }

// Check returns what is wrong with the combination, in the words of the flags, or nil.
func (a Arguments) Check() error {
	forms := 0
	for _, given := range []bool{a.Command != "", a.IsArgv, a.Code != "", a.Plan != "", a.hasInputs()} {
		if given {
			forms++
		}
	}
	switch {
	case a.ID != "" && a.Plan == "":
		return errors.New("--id goes with --plan")
	case a.Code != "" && a.Language == "":
		return errors.New("--code needs --language")
	case a.Language != "" && a.Code == "":
		return errors.New("--language goes with --code")
	case a.hasInputs() && a.hasContext():
		return errors.New("--cwd, --phase, --network and --env go with a command, not with --pr or --over")
	case forms != 1:
		return errors.New("name one thing to decide: a command in quotes, --argv, --code, --plan, --pr or --over")
	case a.Plan != "" && a.hasContext():
		return errors.New("--cwd, --phase, --network and --env do not go with --plan: set them in the plan")
	case a.IsArgv && len(a.Argv) == 0:
		return errors.New("--argv needs a program: --argv -- PROGRAM WORD…")
	}
	return nil
}

// Subject returns what checked arguments without a Plan ask about. read reads the file that
// they name, if any.
func (a Arguments) Subject(read func(name string) ([]byte, error)) (Subject, error) {
	bounded := func(name string) (string, error) {
		data, err := read(name)
		if err == nil && len(data) > plan.MaxDocument {
			err = fmt.Errorf("%s is larger than 1 MiB", name)
		}
		return string(data), err
	}
	if a.hasInputs() {
		given := slices.Clone(a.Over)
		if a.Trigger != "" {
			text, err := bounded(a.Trigger)
			if err != nil {
				return Subject{}, err
			}
			given = append(given, "trigger="+text)
		}
		return ParseInputs(given)
	}
	one := Command{Text: a.Command, Argv: a.Argv, Language: a.Language, Cwd: a.Cwd, Phase: a.Phase, Network: a.Network,
		Env: a.Env}
	if a.Code != "" {
		text, err := bounded(a.Code)
		if err != nil {
			return Subject{}, err
		}
		one.Code = text
	}
	return one.Subject()
}

// OfPlan returns the proposals of p, or only the one with this id if it is not "".
func OfPlan(p proposal.Plan, id string) (Subject, error) {
	if id == "" {
		return Subject{Proposals: p.Proposals}, nil
	}
	i := slices.IndexFunc(p.Proposals, func(p proposal.Proposal) bool { return p.ID == id })
	if i < 0 {
		return Subject{}, fmt.Errorf("the plan has no proposal %q", id)
	}
	return Subject{Proposals: p.Proposals[i : i+1]}, nil
}
