// SPDX-License-Identifier: Apache-2.0

// Package starter writes the files with which a repository begins to use fumehood: a
// configuration file with comments, the workflow or workflows that run a plan on each pull
// request, and one that saves what set-up left on the default branch. The plan has the
// repository's own tests. It also writes a first policy, by the kind of repository: a few
// stricter rules in Rego, their tests, cases for people who do not write Rego, and a README
// with the next steps.
//
// # What it promises
//
// The configuration file passes config.Decode and changes no default: what was detected is
// in its comments. The plan passes plan.Decode. The policy passes fumehood policy check and
// fumehood policy test unchanged. The kind of a repository follows from names of files, at most
// two directories deep; it selects examples, and is never a reason to allow anything.
// Repositories are untrusted: their files are read with bounds, no symbolic link is followed
// out of the directory or written through, and no name from the repository that has a
// character with a meaning in YAML or in expressions of GitHub Actions gets into a workflow.
package starter

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The workflows up to the plan. The tests compare them with .github/examples.
var (
	//go:embed workflows/one-job.yml
	oneJob string
	//go:embed workflows/fumehood.yml
	runJob string
	//go:embed workflows/fumehood-report.yml
	reportJob string
	//go:embed workflows/fumehood-layers.yml
	layersJob string
)

// Paths of the workflows in a repository.
const (
	runPath    = ".github/workflows/fumehood.yml"
	reportPath = ".github/workflows/fumehood-report.yml"
	layersPath = ".github/workflows/fumehood-layers.yml"
)

// A File is a file to write, by its path in the repository.
type File struct {
	Path    string
	Content string
}

// A Repository is what was detected.
type Repository struct {
	Setup setup.Setup
	Tests []Test // at most maxTests; a note of Setup says how many more there are
	// Steps install the toolchains that the repository asks for, in YAML's flow style.
	Steps  []string
	Branch string // the default branch, as far as it is known
}

// A Test is a command that runs a part of the repository's tests.
type Test struct {
	ID, Run, Cwd string
	File         string // that it was detected from
}

const (
	maxTests       = 16
	maxDirectories = setup.MaxProjects // that are looked at
	maxFile        = 1 << 20
)

// DetectRepository detects set-up and tests of the repository at root, for a host that has all tools:
// the workflow runs elsewhere. The root should refuse paths that leave it, as os.Root's FS
// does.
func DetectRepository(root fs.FS) Repository {
	everything := setup.Detector{LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil }}
	found := everything.Detect(root)
	r := Repository{Setup: found.ChoosePart(setup.Everything), Branch: findBranch(root)}
	r.Setup.Notes = append(r.Setup.Notes, found.ListLeftOut(r.Setup)...)
	dirs := slices.DeleteFunc(found.Directories, func(d setup.Directory) bool { return !plainDir.MatchString(d.Path) })
	dirs = dirs[:min(len(dirs), maxDirectories)]
	names := []string{"."}
	for _, dir := range dirs {
		names = append(names, dir.Path)
	}
	for _, required := range setup.ReadRequirements(setup.FileReader(root), names...) {
		if step := required.WorkflowStep(); step != "" && !slices.Contains(r.Steps, step) {
			r.Steps = append(r.Steps, step)
		}
	}
	r.addTests(root, dirs)
	return r
}

// addTests adds the tests in each directory, unless a command that runs in a directory above it runs them, too.
func (r *Repository) addTests(root fs.FS, dirs []setup.Directory) {
	var used []string // by go.work
	for _, m := range goUse.FindAllStringSubmatch(reader{root, "."}.readText("go.work"), maxUses) {
		used = append(used, m[1])
	}
	covers := map[string][]string{} // the directories of a kind of test
	ids, left := map[string]bool{}, 0
	for _, dir := range dirs {
		for _, t := range testsOf(root, dir.Path) {
			isAbove := func(top string) bool { return top == "." || strings.HasPrefix(dir.Path, top+"/") }
			isCovered := dir.Path != "." && slices.ContainsFunc(covers[t.ID], isAbove) && !dir.Locked && t.ID != "go"
			isUsed := t.ID == "go" && dir.Path != "." && slices.Contains(used, dir.Path)
			switch {
			case isCovered, isUsed:
				continue
			case len(r.Tests) == maxTests:
				left++
				continue
			}
			covers[t.ID] = append(covers[t.ID], dir.Path)
			if dir.Path != "." {
				t.ID += "-" + strings.ReplaceAll(dir.Path, "/", "-")
			}
			for ids[t.ID] {
				t.ID += "-2"
			}
			ids[t.ID] = true
			r.Tests = append(r.Tests, t)
		}
	}
	if left > 0 {
		r.Setup.Notes = append(r.Setup.Notes, setup.Note{File: ".",
			Text: fmt.Sprintf("%d more projects have tests: the plan has those of the first %d", left, maxTests)})
	}
}

var branchRef = pattern.New(`^ref: refs/(?:remotes/origin|heads)/([A-Za-z0-9][A-Za-z0-9._/-]{0,99})\s*$`)

// findBranch returns the default branch of the remote origin, or else the branch that is checked out, or else main.
func findBranch(root fs.FS) string {
	for _, file := range []string{".git/refs/remotes/origin/HEAD", ".git/HEAD"} {
		if m := branchRef.FindStringSubmatch(reader{root, "."}.readText(file)); m != nil {
			return m[1]
		}
	}
	return "main"
}

// plainDir are directories whose names may appear in a workflow.
var plainDir = pattern.New(`^(\.|[A-Za-z0-9][A-Za-z0-9._-]{0,63}(/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,6})$`)

var (
	makeTest = pattern.New(`(?m)^test[ \t]*:([^=]|$)`)
	goUse    = pattern.New(`(?m)^\s*(?:use\s+)?\./([A-Za-z0-9][A-Za-z0-9._-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,6})\s*$`)
	gradles  = []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"}
	pythons  = []string{"pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "requirements.txt",
		"requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt"}
	makefiles = []string{"GNUmakefile", "makefile", "Makefile"}
)

// maxUses is how many modules of a go.work are read.
const maxUses = 64

// testsOf returns the commands that run the tests in dir, with the kind of each as its ID.
func testsOf(root fs.FS, dir string) (tests []Test) {
	r := reader{root, dir}
	add := func(id, run, file string) {
		t := Test{ID: id, Run: run, File: path.Join(dir, file)}
		if dir != "." {
			t.Cwd = dir
		}
		tests = append(tests, t)
	}
	switch {
	case r.hasFile("go.mod"):
		add("go", "go test ./...", "go.mod")
	case r.hasFile("go.work"):
		var patterns []string
		for _, m := range goUse.FindAllStringSubmatch(r.readText("go.work"), maxUses) {
			patterns = append(patterns, "./"+m[1]+"/...")
		}
		if len(patterns) > 0 {
			add("go", "go test "+strings.Join(patterns, " "), "go.work")
		}
	}
	if run := nodeTest(r); run != "" {
		add("node", run, "package.json")
	}
	if run, file := pythonTest(r); run != "" {
		add("python", run, file)
	}
	if r.hasFile("Cargo.toml") {
		add("rust", "cargo test", "Cargo.toml")
	}
	if r.hasFile("pom.xml") {
		add("maven", "mvn -B -o test", "pom.xml")
	} else if file := r.firstFile(gradles); file != "" {
		add("gradle", "gradle --no-daemon --offline test", file)
	}
	if r.hasFile("Gemfile") {
		switch {
		case r.isDir("spec"):
			add("ruby", "bundle exec rspec", "Gemfile")
		case r.hasFile("Rakefile"):
			add("ruby", "bundle exec rake test", "Rakefile")
		}
	}
	if file := r.firstFile(makefiles); file != "" && len(tests) == 0 && makeTest.MatchString(r.readText(file)) {
		add("make", "make test", file)
	}
	return tests
}

// nodeTest returns the command for the test script of package.json, "" if it has none.
func nodeTest(r reader) string {
	var m struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(r.readText("package.json")), &m) != nil {
		return ""
	}
	if script := m.Scripts["test"]; script == "" || strings.Contains(script, "no test specified") {
		return ""
	}
	manager := nodeManager(r)
	for dir := r.dir; manager == "" && dir != "."; { // a member of a workspace has that of the workspace
		dir = path.Dir(dir)
		manager = nodeManager(reader{r.root, dir})
	}
	if slices.Contains([]string{"pnpm", "yarn"}, manager) {
		return manager + " test"
	}
	return "npm test"
}

// nodeManager returns the package manager of the project in a directory, "" if nothing names one.
func nodeManager(r reader) string {
	var m struct {
		PackageManager string `json:"packageManager"`
	}
	if json.Unmarshal([]byte(r.readText("package.json")), &m) == nil && m.PackageManager != "" {
		manager, _, _ := strings.Cut(m.PackageManager, "@")
		return manager
	}
	for _, lock := range [][2]string{{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"package-lock.json", "npm"},
		{"npm-shrinkwrap.json", "npm"}} {
		if r.hasFile(lock[0]) {
			return lock[1]
		}
	}
	return ""
}

// pythonTest returns pytest if a file mentions it, unittest if there is a directory of
// tests, and the file that it was detected from.
func pythonTest(r reader) (run, file string) {
	if file := r.firstFile([]string{"pytest.ini", "conftest.py"}); file != "" {
		return "python3 -m pytest", file
	}
	found := ""
	for _, file := range pythons {
		text := r.readText(file)
		if strings.Contains(text, "pytest") {
			return "python3 -m pytest", file
		}
		if found == "" && text != "" {
			found = file
		}
	}
	if found != "" && (r.isDir("tests") || r.isDir("test")) {
		return "python3 -m unittest", found
	}
	return "", ""
}

// A reader reads files of one directory. Links are no files.
type reader struct {
	root fs.FS
	dir  string
}

func (r reader) fileMode(name string) fs.FileMode {
	info, err := fs.Lstat(r.root, path.Join(r.dir, name))
	if err != nil {
		return fs.ModeIrregular
	}
	return info.Mode()
}

func (r reader) hasFile(name string) bool { return r.fileMode(name).IsRegular() }
func (r reader) isDir(name string) bool   { return r.fileMode(name).IsDir() }

// firstFile returns the first of names that is a file, or "".
func (r reader) firstFile(names []string) string {
	if i := slices.IndexFunc(names, r.hasFile); i >= 0 {
		return names[i]
	}
	return ""
}

// readText returns the first maxFile bytes of a file, "" if it cannot be read.
func (r reader) readText(name string) string {
	if !r.hasFile(name) {
		return ""
	}
	f, err := r.root.Open(path.Join(r.dir, name))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// Files returns the files for r. For pull requests from forks there are two workflows. Where there is set-up, one
// more saves its layer, which the workflow of pull requests restores.
func (r Repository) Files(forks bool) []File {
	files := []File{{config.Path, r.Config()}}
	if forks {
		files = append(files, File{runPath, r.runWorkflow(runJob)}, File{reportPath, reportJob})
	} else {
		files = append(files, File{runPath, r.runWorkflow(oneJob)})
	}
	if len(r.Setup.Steps) > 0 {
		text := strings.Replace(layersJob, "branches: [main]", "branches: ["+r.Branch+"]", 1)
		files = append(files, File{layersPath, addSteps(text, r.Steps...)})
	}
	return files
}

// runWorkflow returns the workflow of pull requests, with its commands.
func (r Repository) runWorkflow(text string) string {
	if len(r.Setup.Steps) == 0 {
		return addSteps(text, r.Steps...) + r.commandInput()
	}
	const inputs = "        with:\n"
	text = strings.Replace(text, inputs,
		inputs+"          layers-cache: fumehood-layers # set-up runs where it has no layer that fits\n", 1)
	return addSteps(text, append(slices.Clip(r.Steps), restoreStep())...) + r.commandInput()
}

// restoreStep returns the step that restores what the workflow of layers has saved, by the same release.
func restoreStep() string {
	_, release, _ := strings.Cut(layersJob, "actions/cache/save@")
	release, _, _ = strings.Cut(release, "\n")
	return "- uses: actions/cache/restore@" + release + `
        with:
          path: ${{ runner.temp }}/fumehood-layers
          key: fumehood-layers-${{ runner.arch }}-${{ github.event.pull_request.base.sha }}
          restore-keys: fumehood-layers-${{ runner.arch }}-`
}

// addSteps adds steps to the workflow's job, before fumehood.
func addSteps(workflow string, steps ...string) string {
	const first = "    steps:\n"
	var b strings.Builder
	for _, step := range steps {
		b.WriteString("      " + step + "\n")
	}
	return strings.Replace(workflow, first, first+b.String(), 1)
}

// commandInput returns the input run with the commands of Plan, or the input plan if one of them has a directory.
func (r Repository) commandInput() string {
	const input, nested = "          ", "            "
	if slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Cwd != "" }) {
		return input + "plan: |\n" + indentLines(r.Plan(), nested)
	}
	if len(r.Tests) == 1 {
		return input + "run: " + r.Tests[0].Run + "\n"
	}
	var b strings.Builder
	if len(r.Tests) == 0 {
		b.WriteString("# " + noTests + "\n" + showChanges + "\n")
	}
	for _, t := range r.Tests {
		b.WriteString(t.Run + "\n")
	}
	return input + "run: |\n" + indentLines(b.String(), nested)
}

func indentLines(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}

// Without tests a plan shows what the pull request changes.
const (
	noTests     = "No tests were found. Replace this command by the one that runs them."
	showChanges = "git diff --stat origin/base...HEAD"
)

// Plan returns the plan that runs the tests, as YAML. Without tests it shows what the pull
// request changes.
func (r Repository) Plan() string {
	var b strings.Builder
	b.WriteString("schema: " + proposal.PlanSchema + "\nproposals:\n")
	if len(r.Tests) == 0 {
		b.WriteString("  # " + noTests + "\n  - id: changes\n    run: " + showChanges + "\n")
	}
	for _, t := range r.Tests {
		id := t.ID
		if len(r.Tests) == 1 {
			id = "test"
		}
		fmt.Fprintf(&b, "  - id: %s\n    run: %s\n", id, t.Run)
		if t.Cwd != "" {
			fmt.Fprintf(&b, "    cwd: %q\n", t.Cwd)
		}
	}
	return b.String()
}

// Config returns the configuration file. It sets nothing: every setting is a comment with
// the default, or with an example.
func (r Repository) Config() string {
	var b strings.Builder
	comment := func(lines ...string) {
		for _, line := range lines {
			if _, _, hidden := document.FirstHidden(line); !hidden {
				b.WriteString("#" + line + "\n")
			}
		}
	}
	comment(" Configuration of fumehood. In CI it is read at the tip of the default branch, never from a pull request.",
		" \"fumehood config\" shows what is in force. The fields: "+Documentation)
	b.WriteString("schema: " + config.Schema + "\n\n")
	comment(" Set-up installs dependencies before the commands run. It runs in the sandbox and can only",
		" read package registries. auto detects it, and a plan sets up what its commands touch:")
	if len(r.Setup.Steps)+len(r.Setup.Notes) == 0 {
		comment("   nothing to install was found")
	}
	for _, step := range r.Setup.Steps {
		comment("   " + terminal.EscapePart(FormatCommand(step.Proposal), 200))
	}
	for _, n := range r.Setup.Notes {
		comment("   note: " + terminal.EscapePart(n.String(), 300))
	}
	comment(" none switches it off, and a list of commands replaces it:",
		"   setup:", "     - npm ci", "     - argv: [make, fixtures]", "       timeout: 5m")
	b.WriteString("setup: auto\n\n")
	needed := "none"
	if names := r.Setup.Registries(); len(names) > 0 {
		needed = strings.Join(names, ", ")
	}
	comment(" The package registries that set-up may read: auto (those that it needs, here: "+needed+"), none,",
		" or a list such as [go, npm].")
	b.WriteString("registries: auto\n\n")
	comment(" Limits that commands request if the plan has none. Policy may grant less.",
		" limits:", "   memory: 4GiB", "   wall: 5m")
	b.WriteString("\n")
	comment(" The maximum duration of fumehood run. In CI, the action's input timeout takes precedence.",
		" timeout: 15m")
	return b.String()
}

// Documentation is the page that describes the fields of the configuration file.
const Documentation = "https://github.com/fumehood/fumehood/blob/main/docs/CONFIGURATION.md"

// FormatCommand returns the command of a step of set-up in one line, after its directory if that
// is not the workspace's.
func FormatCommand(p proposal.Proposal) string {
	text := p.Run
	if p.Argv != nil {
		words := make([]string, len(p.Argv))
		for i, word := range p.Argv {
			words[i] = terminal.QuoteWord(word)
		}
		text = strings.Join(words, " ")
	}
	if p.Cwd != "" {
		text = "cd " + terminal.QuoteWord(p.Cwd) + " && " + text
	}
	return terminal.EscapeLine(text)
}
