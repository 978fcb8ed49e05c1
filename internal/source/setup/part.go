// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Touch is what a command may use of a repository.
type Touch struct {
	Dir      string // that it runs in, relative to the root: "." or "web/app"
	Below    bool   // it may use every project below Dir, too, except for those that are Named
	Language string // only projects of this one; "" for all
	// Packages are the Go packages, as patterns relative to Dir, that are compiled; nil for all.
	Packages []string
	// Builds means that a command of Go does not vet packages, as go test does.
	Builds bool
}

// Everything is what a command in the root may use of which nothing is known.
var Everything = []Touch{{Dir: ".", Below: true}}

// ChoosePart returns what of s commands need that touch these parts of the repository: for each the nearest
// projects at or above its directory, and those below. Steps that were not detected are always
// needed, and may use everything. Without them and without a touch, nothing is needed.
func (s Setup) ChoosePart(touches []Touch) Setup {
	part := Setup{Notes: slices.Clone(s.Notes), Env: s.Env}
	if s.RunsFirst() {
		touches = slices.Concat(Everything, touches)
	}
	if len(touches) == 0 {
		return part
	}
	if slices.ContainsFunc(touches, s.isBelowLink) {
		touches = slices.Concat(Everything, touches)
	}
	touches = dropRepeatedTouches(touches)
	for _, dir := range s.Always {
		touches = append(slices.Clip(touches), Touch{Dir: dir})
	}
	part.Services = s.Services
	chosen := map[string]bool{} // ids
	for _, step := range s.Steps {
		chosen[step.ID] = step.Language == "" && !s.isShared(step)
	}
	for _, touch := range touches {
		s.chooseSteps(chosen, touch)
	}
	for _, step := range slices.Backward(s.Steps) {
		for _, id := range step.Needs {
			chosen[id] = chosen[id] || chosen[step.ID]
		}
	}
	var dirs []string // of Python's projects
	for _, step := range s.Steps {
		if !chosen[step.ID] {
			continue
		}
		if step.Optional && step.Language == Go {
			if step = s.compileOnly(step, touches); step.Argv == nil {
				continue
			}
		}
		if step.Detected && len(part.Steps) >= MaxSteps {
			note := Note{File: step.file(), Text: "left out: the plan's set-up has too many steps"}
			if !slices.Contains(part.Notes, note) {
				part.Notes = append(part.Notes, note)
			}
			continue
		}
		if part.Steps = append(part.Steps, step); step.Language == Python {
			dirs = append(dirs, step.Dir)
		}
	}
	for _, dir := range s.Path {
		if of, isVenv := strings.CutSuffix(dir, Venv+"/bin"); !isVenv || slices.Contains(dirs, path.Clean(of)) {
			part.Path = append(part.Path, dir)
		}
	}
	return part
}

// isBelowLink reports whether the directory of touch is elsewhere than its name says.
func (s Setup) isBelowLink(touch Touch) bool {
	dir := path.Clean(touch.Dir)
	return slices.ContainsFunc(s.Links, func(link string) bool {
		return link == "." || dir == link || strings.HasPrefix(dir, link+"/")
	})
}

// file returns the file that a detected step was found from.
func (step Step) file() string {
	name, _, _ := strings.Cut(step.Why, ": ")
	return name
}

// ListLeftOut returns a note for each project of s that part, one of s, does not set up, with the line of
// the configuration file that includes it.
func (s Setup) ListLeftOut(part Setup) (notes []Note) {
	type project struct{ dir, language string }
	seen := map[project]bool{}
	for _, step := range part.Steps {
		seen[project{step.Dir, step.Language}] = true
	}
	for _, step := range s.Steps {
		of := project{step.Dir, step.Language}
		isNoted := slices.ContainsFunc(part.Notes,
			func(n Note) bool { return n.File == step.file() && strings.HasPrefix(n.Text, "left out: ") })
		if step.Language == "" || seen[of] || isNoted {
			continue
		}
		seen[of] = true
		why := "no command touches it"
		switch {
		case isAside(step.Dir):
			why = "it is documentation or an example, and no command runs there"
		case step.Named:
			why = "it has no lock file, and no command runs there"
		}
		notes = append(notes, Note{File: step.file(), Text: fmt.Sprintf(
			"left out: %s; to include it, add to .github/fumehood.yml: projects: %s", why,
			formatFlowList(append(slices.Clip(s.Always), step.Dir)))})
	}
	return notes
}

// plainWord is what needs no quotes in a list of YAML.
var plainWord = pattern.New(`^[A-Za-z0-9_./][A-Za-z0-9_./ -]*$`)

// formatFlowList writes a list as YAML does in one line.
func formatFlowList(list []string) string {
	var words []string
	for _, word := range list {
		if !plainWord.MatchString(word) || strings.HasSuffix(word, " ") {
			word = "'" + strings.ReplaceAll(word, "'", "''") + "'"
		}
		words = append(words, word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// MaxTouches is the maximum number of parts of a repository that a plan touches; more are everything.
const MaxTouches = 256

// dropRepeatedTouches returns each touch once. They are a proposer's, who may write any number.
func dropRepeatedTouches(touches []Touch) (list []Touch) {
	seen := map[string]bool{}
	for _, touch := range touches {
		if key := fmt.Sprintf("%+v", touch); !seen[key] {
			seen[key] = true
			list = append(list, touch)
		}
	}
	if len(list) > MaxTouches {
		return Everything
	}
	return list
}

// findNearestDir returns the deepest directory at or above dir that may be a project.
func findNearestDir(dir string) string {
	parts := strings.SplitN(path.Clean(dir), "/", MaxDepth+1)
	return strings.Join(parts[:min(len(parts), MaxDepth)], "/")
}

// isShared reports whether other steps need step.
func (s Setup) isShared(step Step) bool {
	return slices.ContainsFunc(s.Steps,
		func(other Step) bool { return other.Language != "" && slices.Contains(other.Needs, step.ID) })
}

// maxVetted is how many packages are vetted by name: the test of each is linked, which nothing keeps.
const maxVetted = 4

// compileOnly returns step, which compiles or vets a project of Go, for the packages that touches name. If none
// of them vets, a step that does has no Argv.
func (s Setup) compileOnly(step Step, touches []Touch) Step {
	command, vets := goCompile, isVetStep(step)
	if vets {
		command = goVet
	}
	var only []string
	for _, touch := range touches {
		chosen := map[string]bool{}
		if s.chooseSteps(chosen, touch); !chosen[step.ID] || vets && touch.Builds {
			continue
		}
		rel, below := relativeTo(step.Dir, path.Clean(touch.Dir))
		if touch.Dir == step.Dir {
			rel, below = ".", true
		}
		if touch.Packages == nil || !below {
			return step
		}
		for _, pattern := range touch.Packages {
			name := "./" + path.Join(rel, pattern)
			if name == "./." {
				name = "."
			}
			only = append(only, name)
		}
	}
	slices.Sort(only)
	only = slices.Compact(only)
	isPattern := func(name string) bool { return strings.HasSuffix(name, "...") }
	switch {
	case vets && len(only) == 0:
		step.Argv = nil
	case vets && (len(only) > maxVetted || slices.ContainsFunc(only, isPattern)):
	default:
		step.Argv = slices.Concat(command, only)
	}
	return step
}

// chooseSteps adds the steps that a touch needs.
func (s Setup) chooseSteps(chosen map[string]bool, touch Touch) {
	add := func(is func(Step) bool) (found bool) {
		for _, step := range s.Steps {
			if step.Language != "" && (touch.Language == "" || step.Language == touch.Language) && is(step) {
				chosen[step.ID], found = true, true
			}
		}
		return found
	}
	if touch.Below {
		add(func(step Step) bool {
			_, below := relativeTo(touch.Dir, step.Dir)
			return below && !step.Named
		})
	}
	dir := findNearestDir(touch.Dir)
	for !add(func(step Step) bool { return step.Dir == dir }) && dir != "." && dir != "/" {
		dir = path.Dir(dir)
	}
}
