// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Setup is what runs before the first command of a plan that may need it, in the same sandbox, such as the
// installation of dependencies. A plan gets the steps of the projects that its commands touch. Policy decides
// the commands of set-up like any other; only to them does the shipped policy grant the registries that they
// request.
type Setup struct {
	// Services start servers for the commands, before the Steps, and again in each new sandbox.
	Services []proposal.Proposal
	Steps    []SetupStep // without an ID, a step is setup- and its number
	// Env are variables for set-up and for the commands after it.
	Env map[string]string
	// Path are directories relative to the workspace, to put first in PATH, for set-up and for the
	// commands after it.
	Path []string
	// Notes say what was seen and not done, one printable line each. They have no effect.
	Notes []string
	// Projects are directories relative to the workspace whose steps run although no command touches them, if
	// any step runs.
	Projects []string
}

// A SetupStep is one command of set-up.
type SetupStep struct {
	proposal.Proposal
	// Optional means that the step only saves time: later commands work without it, and its
	// failure is not one of set-up. Optional steps come last.
	Optional bool
	// Detected means that FindSetup has found the step: it makes dependencies and caches, and no file that a
	// command reads as the repository's. If one step is not Detected, all of the Setup runs before all commands.
	Detected bool
	// Language and Dir are those of the project that a detected step is for: "go", "node", "rust", "python",
	// "ruby" or "java", and a directory relative to the workspace. Both are "" for a step that others need.
	Language, Dir string
	// Named means that only a command that runs in the project needs the step: the project is documentation or
	// an example, or has no lock file.
	Named bool
}

// FindSetup returns the set-up that the files of o's Workspace ask for: the installation of what lock
// files name, with the tools that commands of a Gate with o find. It needs no root and runs nothing of
// the workspace. An image is pulled if necessary. Its error is a *proposal.StopError.
func FindSetup(ctx context.Context, o Options) (Setup, error) {
	g := Gate{o: o}
	g.o.Workspace = workspaceOf(o)
	if err := g.openRoot(ctx, g.o.search()); err != nil {
		return Setup{}, err
	}
	found, err := planning.FindSetupIn(g.root, config.Config{}, g.o.Workspace)
	return setupOf(found), errors.Join(err, g.image.Close())
}

// setupOf returns s as options.
func setupOf(s setup.Setup) Setup {
	public := Setup{Services: s.Services, Env: s.Env, Path: s.Path, Projects: s.Always}
	for _, step := range s.Steps {
		public.Steps = append(public.Steps, SetupStep(step))
	}
	for _, n := range s.Notes {
		public.Notes = append(public.Notes, n.String())
	}
	return public
}

// toSetup returns s as it is planned: each command is of set-up, whatever it says of itself.
func (s Setup) toSetup() setup.Setup {
	inner := setup.Setup{Env: s.Env, Path: s.Path, Always: s.Projects}
	for _, p := range s.Services {
		p.Phase, p.Origin = proposal.PhaseSetup, proposal.OriginService
		inner.Services = append(inner.Services, p)
	}
	for i, step := range s.Steps {
		step.ID, step.Phase = cmp.Or(step.ID, fmt.Sprintf("setup-%d", i+1)), proposal.PhaseSetup
		inner.Steps = append(inner.Steps, setup.Step(step))
	}
	return inner
}

// planRun returns plan as Run decides it, and the part of Setup that is in it. A plan that needs a part gets
// all where a layer has that, or where later runs of the Gate, whose plans touch other parts, begin with its
// private layer.
func (g *Gate) planRun(ctx context.Context, plan proposal.Plan) (proposal.Plan, setup.Setup) {
	planned, part := g.o.planner().Plan(plan)
	if len(part.Steps) > 0 && (g.o.Repeated || g.o.keepsLayers() && g.hasWholeLayer(ctx, plan, part)) {
		return g.o.wholePlanner().Plan(plan)
	}
	return planned, part
}

// maxLeftOut is how many projects a notice names each.
const maxLeftOut = 8

// reportLeftOut says which projects the part of set-up that a plan needs leaves out.
func (g *Gate) reportLeftOut(part setup.Setup) {
	if len(part.Steps) == 0 {
		return // it needs none
	}
	left := append(slices.Clip(part.Notes), g.o.Setup.toSetup().ListLeftOut(part)...)
	for _, n := range left[:min(len(left), maxLeftOut)] {
		g.o.sendNotice("set-up: " + terminal.EscapeLine(n.String()))
	}
	if more := len(left) - maxLeftOut; more > 0 {
		g.o.sendNotice(fmt.Sprintf("set-up: %d more are left out; fumehood config lists all", more))
	}
}

// pathOf returns the directories of s inside the sandbox, in PATH's form.
func pathOf(s setup.Setup) string {
	var list []string
	for _, dir := range s.Path {
		list = append(list, filepath.Join(sandbox.Workspace, dir)+":")
	}
	return strings.Join(list, "")
}
