// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A project is one file of testdata/projects; its README says what the fields mean.
type project struct {
	Project  string
	Sources  map[string]struct{ Path, Commit string }
	Commands []struct {
		From, Run string
		Want      proposal.Effect
		Setup     []string
		Miss      string
	}
}

// TestProjects holds that the shipped policy answers to the commands of popular projects
// as a maintainer would expect, except for the misses that are written down.
func TestProjects(t *testing.T) {
	lanetest.SkipShort(t)
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Opens, exampleRegistries)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../testdata/projects/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d projects, %v", len(files), err)
	}
	commands, misses := 0, 0
	for _, file := range files {
		p := readProject(t, file)
		for _, c := range p.Commands {
			commands++
			if _, ok := p.Sources[c.From]; !ok {
				t.Errorf("%s: %q stands nowhere", p.Project, c.Run)
			}
			asked := proposal.Proposal{ID: "t", Run: c.Run}
			if len(c.Setup) > 0 {
				asked.Phase = proposal.PhaseSetup
			}
			for _, name := range c.Setup {
				asked.Network = append(asked.Network, "registry:"+name)
			}
			d, err := e.Decide(t.Context(), asked, analysis(asked))
			if err != nil {
				t.Fatal(err)
			}
			if c.Miss != "" {
				misses++
			}
			if (d.Effect == c.Want) == (c.Miss != "") {
				t.Errorf("%s: %s, want %s (miss: %q): %s\n\t%s", p.Project, d.Effect, c.Want, c.Miss, c.Run, whys(d))
			}
		}
	}
	t.Logf("%d commands of %d projects, %d misses", commands, len(files), misses)
	if misses*20 > commands {
		t.Errorf("%d of %d are misses", misses, commands)
	}
}

func whys(d proposal.Decision) string {
	var list []string
	for _, r := range d.Reasons {
		list = append(list, r.Rule+": "+r.Message)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "; ")
}

func readProject(t *testing.T, file string) (p project) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if p.Project == "" || len(p.Commands) == 0 {
		t.Fatalf("%s is empty", file)
	}
	return p
}
