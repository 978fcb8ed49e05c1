// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/guest"
	"github.com/fumehood/fumehood/pkg/setup"
)

// FindSetup returns the set-up that c requests for the repository in workspace: what is
// detected there, c's commands, or nothing. c must come from the maintainer, never from a
// pull request. The commands are decided by policy like any other; only in their phase, and
// only to this set-up, the default policy grants the registries that they request.
func FindSetup(c config.Config, workspace string) (setup.Setup, error) {
	switch c.Setup.Mode {
	case config.None:
		return setup.Setup{}, nil
	case config.Listed:
		return listedSetup(c), nil
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return setup.Setup{}, &proposal.StopError{Code: "sandbox.workspace", Message: fmt.Sprintf("cannot read the directory %q", workspace), Hint: "name the directory that holds the pull request's code", Err: err}
	}
	defer root.Close()
	s := setup.Detect(root.FS())
	s.Steps = slices.DeleteFunc(s.Steps, func(step setup.Step) bool { return !allowed(c, step.Network) })
	return s, nil
}

// allowed reports whether c lets set-up request all the entries.
func allowed(c config.Config, network []string) bool {
	return !slices.ContainsFunc(network, func(entry string) bool { return !c.Registries.Allow(strings.TrimPrefix(entry, "registry:")) })
}

// defaultRegistries are those that commands of a configuration file may read if it names none.
var defaultRegistries = []string{"go", "npm", "pypi", "crates", "maven", "rubygems"}

func listedSetup(c config.Config) (s setup.Setup) {
	for i, command := range c.Setup.Commands {
		p := command.Proposal(fmt.Sprintf("setup-%d", i+1))
		if p.Network == nil {
			for _, name := range defaultRegistries {
				if c.Registries.Allow(name) {
					p.Network = append(p.Network, "registry:"+name)
				}
			}
		}
		s.Steps = append(s.Steps, setup.Step{Proposal: p})
	}
	return s
}

// beforeCommands returns plan with the set-up's commands first. Their ids do not repeat
// the plan's.
func beforeCommands(s setup.Setup, plan proposal.Plan) proposal.Plan {
	taken := map[string]bool{}
	for _, p := range plan.Proposals {
		taken[p.ID] = true
	}
	var all []proposal.Proposal
	for _, step := range s.Steps {
		p := step.Proposal
		p.Origin = proposal.OriginSetup
		for taken[p.ID] {
			p.ID = "fumehood-" + p.ID
		}
		taken[p.ID] = true
		if step.Optional {
			p.Run, p.Argv = quoted(p.Argv)+" || true", nil
		}
		all = append(all, p)
	}
	plan.Proposals = append(all, plan.Proposals...)
	return plan
}

// quoted returns words as shell text.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // a NUL, which no proposal has
			q = "''"
		}
		list[i] = q
	}
	return strings.Join(list, " ")
}

// setupPath returns the directories of the set-up inside the sandbox, in PATH's form.
func setupPath(s setup.Setup) string {
	var list []string
	for _, dir := range s.Path {
		list = append(list, filepath.Join(guest.Workspace, dir)+":")
	}
	return strings.Join(list, "")
}
