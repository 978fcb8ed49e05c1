// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Registries that the configuration leaves out remove the steps that need them, and those
// that need such a step. A tool that the sandbox will not have is not used.
func TestFindSetup(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "go.mod"): "module x\n\nrequire a.b/c v1.0.0\n", filepath.Join(dir, "go.sum"): "", filepath.Join(bin, "go"): "#!/bin/sh\n",
		filepath.Join(dir, "package.json"): "{}", filepath.Join(dir, "package-lock.json"): "{}",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(c config.Config) (list []string) {
		s, err := FindSetup(c, dir, bin)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range s.Steps {
			list = append(list, step.ID)
		}
		return list
	}
	if diff := cmp.Diff([]string{"setup-go", "setup-go-build"}, ids(config.Config{})); diff != "" {
		t.Errorf("with Go alone: %s", diff)
	}
	if got := ids(config.Config{Registries: config.Registries{Listed: true, Names: []string{"npm"}}}); got != nil {
		t.Errorf("without the registry go: %v", got)
	}
	if got := ids(config.Config{Setup: config.Setup{Mode: config.None}}); got != nil {
		t.Errorf("setup none: %v", got)
	}
}

// A step with several registries runs if the first is allowed, with those that are allowed. Those of release
// assets are read only where the configuration names them, by detected and by listed commands.
func TestFurtherRegistries(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "build.gradle"): "", filepath.Join(bin, "gradle"): "#!/bin/sh\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for want, c := range map[string]config.Config{
		"registry:maven registry:gradle": {},
		"registry:maven":                 {Registries: config.Registries{Listed: true, Names: []string{"maven"}}},
		"registry:maven registry:gradle registry:github-releases": {Registries: config.Registries{Listed: true, Names: []string{"github-releases", "gradle", "maven"}}},
		"": {Registries: config.Registries{Listed: true, Names: []string{"gradle", "github-releases"}}},
	} {
		s, err := FindSetup(c, dir, bin)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && len(s.Steps) == 0 {
			continue
		}
		if len(s.Steps) != 1 || strings.Join(s.Steps[0].Network, " ") != want {
			t.Errorf("%+v: %+v, want %s", c.Registries, s.Steps, want)
		}
	}
	listed := config.Setup{Mode: config.Listed, Commands: []config.Command{{Run: "make"}}}
	s, err := FindSetup(config.Config{Setup: listed}, dir, bin)
	if err != nil || slices.Contains(s.Steps[0].Network, "registry:github-releases") || slices.Contains(s.Steps[0].Network, "registry:apt") ||
		!slices.Contains(s.Steps[0].Network, "registry:hex") {
		t.Errorf("%+v, %v", s.Steps, err)
	}
	s, err = FindSetup(config.Config{Setup: listed, Registries: config.Registries{Listed: true, Names: []string{"npm", "github-releases"}}}, dir, bin)
	if err != nil || strings.Join(s.Steps[0].Network, " ") != "registry:npm registry:github-releases" {
		t.Errorf("%+v, %v", s.Steps, err)
	}
}

// Ids of set-up never meet those of the plan, whose commands come last, and its steps keep
// needing each other.
func TestPlanned(t *testing.T) {
	o := Planner{Setup: setup.Setup{Steps: []setup.Step{
		{Proposal: proposal.Proposal{ID: "setup-1", Run: "y"}}, {Proposal: proposal.Proposal{ID: "setup-2", Argv: []string{"a", "b c"}, Needs: []string{"setup-1"}}, Optional: true},
	}}}
	got := planned(o, proposal.Proposal{ID: "setup-1", Run: "x", Origin: proposal.OriginSetup}).Proposals
	want := []proposal.Proposal{{ID: "fumehood-setup-1", Run: "y", Origin: proposal.OriginSetup, Needs: nil},
		{ID: "setup-2", Run: "a 'b c' || true", Origin: proposal.OriginSetup, Needs: []string{"fumehood-setup-1"}}, {ID: "setup-1", Run: "x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Detected set-up runs before the first command that may need it, and not at all if none may.
// What the commands of a configuration make is not known: they run before all. The order of the
// plan's commands does not change.
func TestPlannedOnDemand(t *testing.T) {
	step := setup.Step{Proposal: proposal.Proposal{ID: "setup-npm", Argv: []string{"npm", "ci"}}, Detected: true}
	listed := setup.Step{Proposal: proposal.Proposal{ID: "listed", Run: "make"}}
	service := proposal.Proposal{ID: "s", Run: "r", Origin: proposal.OriginService}
	read, test, last := proposal.Proposal{ID: "log", Run: "git log -1"}, proposal.Proposal{ID: "test", Run: "npm test"}, proposal.Proposal{ID: "cat", Run: "cat a"}
	found := setup.Setup{Steps: []setup.Step{step}}
	for _, c := range []struct {
		setup setup.Setup
		plan  []proposal.Proposal
		want  []string
	}{
		{found, []proposal.Proposal{read, test, last}, []string{"log", "setup-npm", "test", "cat"}},
		{found, []proposal.Proposal{test, read}, []string{"setup-npm", "test", "log"}},
		{found, []proposal.Proposal{read, last}, []string{"log", "cat"}},
		{setup.Setup{Steps: []setup.Step{step, listed}}, []proposal.Proposal{read}, []string{"setup-npm", "listed", "log"}},
		{setup.Setup{Services: []proposal.Proposal{service}}, []proposal.Proposal{read, test}, []string{"log", "s", "test"}},
	} {
		if diff := cmp.Diff(c.want, idsOf(planned(Planner{Setup: c.setup}, c.plan...))); diff != "" {
			t.Error(diff)
		}
	}
}

// Only the projects that a command touches are set up, and their environment alone is in PATH.
func TestPlannedProjects(t *testing.T) {
	found := setup.Setup{Path: []string{"a/.venv/bin", "b/.venv/bin"}, Steps: []setup.Step{
		{Proposal: proposal.Proposal{ID: "a", Run: "x"}, Detected: true, Language: setup.Python, Dir: "a"},
		{Proposal: proposal.Proposal{ID: "b", Run: "x"}, Detected: true, Language: setup.Python, Dir: "b"},
	}}
	if left := found.ListLeftOut(found.ChoosePart([]setup.Touch{{Dir: "a"}})); len(left) != 1 || !strings.Contains(left[0].Text, "projects: [b]") {
		t.Errorf("%v", left)
	}
	test := proposal.Proposal{ID: "t", Run: "pytest"}
	plan, part := Planner{Setup: found, Directory: "b"}.Plan(proposal.Plan{Proposals: []proposal.Proposal{test}})
	if diff := cmp.Diff([]string{"b", "t"}, idsOf(plan)); diff != "" || !slices.Equal(part.Path, []string{"b/.venv/bin"}) {
		t.Errorf("%s, PATH %s", diff, part.Path)
	}
	// A run that makes layers runs all of set-up, also for a plan that needs none.
	read := proposal.Proposal{ID: "log", Run: "git log -1"}
	if got := idsOf(planned(Planner{Setup: found, Whole: true}, read)); !slices.Equal(got, []string{"log", "a", "b"}) {
		t.Error(got)
	}
	found.Always = []string{"a"}
	test.Cwd = "b"
	if got := idsOf(planned(Planner{Setup: found}, test)); !slices.Equal(got, []string{"a", "b", "t"}) {
		t.Error(got)
	}
}

// Services start first, and again for each proposal that requests a new sandbox, unless
// nothing else has run in the one that is there.
func TestPlannedServices(t *testing.T) {
	o := Planner{Setup: setup.Setup{Services: []proposal.Proposal{{ID: "service-redis", Run: "r", Origin: proposal.OriginService}}}}
	ids := func(list ...proposal.Proposal) (ids []string) {
		for _, p := range planned(o, list...).Proposals {
			ids = append(ids, p.ID)
			if p.Origin == proposal.OriginService && !p.Fresh {
				t.Errorf("%s does not start in a new sandbox", p.ID)
			}
		}
		return ids
	}
	a, fresh := proposal.Proposal{ID: "a", Run: "x"}, proposal.Proposal{ID: "b", Run: "x", Fresh: true}
	if diff := cmp.Diff([]string{"service-redis", "a", "service-redis-b", "b"}, ids(a, fresh)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"service-redis", "b"}, ids(fresh)); diff != "" {
		t.Error(diff)
	}
	taken := proposal.Proposal{ID: "service-redis", Run: "x", Origin: proposal.OriginService}
	if diff := cmp.Diff([]string{"fumehood-service-redis", "service-redis"}, idsOf(planned(o, taken))); diff != "" {
		t.Error(diff)
	}
	if planned(o, taken).Proposals[1].Origin != "" {
		t.Error("a plan's proposal is a service")
	}
	o.Setup.Steps = []setup.Step{{Proposal: proposal.Proposal{ID: "setup-1", Run: "x"}}}
	if diff := cmp.Diff([]string{"service-redis", "setup-1", "service-redis-b", "b"}, ids(fresh)); diff != "" {
		t.Error(diff)
	}
}

// planned returns a plan of list as o decides it.
func planned(o Planner, list ...proposal.Proposal) proposal.Plan {
	plan, _ := o.Plan(proposal.Plan{Proposals: list})
	return plan
}

func idsOf(plan proposal.Plan) (ids []string) {
	for _, p := range plan.Proposals {
		ids = append(ids, p.ID)
	}
	return ids
}
