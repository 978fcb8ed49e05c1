// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Venv is the project's virtual environment, below its directory. The tools that make one
// of their own use the same place.
const Venv = ".venv"

var (
	// requirements of the root, and of requirements/; of each list the first that exists.
	requirementFiles = [][]string{
		{"requirements.txt", "requirements/requirements.txt", "requirements/base.txt"},
		{"requirements-dev.txt", "requirements_dev.txt", "dev-requirements.txt", "requirements/dev.txt", "requirements/development.txt"},
		{"requirements-test.txt", "requirements_test.txt", "requirements-tests.txt", "test-requirements.txt", "requirements/tests.txt", "requirements/test.txt", "requirements/testing.txt", "requirements/ci.txt"},
	}
	testExtras = []string{"test", "tests", "testing"}
	devExtras  = []string{"dev", "develop", "development"}
)

// A pyproject is what is known of a Python project.
type pyproject struct {
	file     string // that makes it a package; "" for none
	extras   []string
	groups   []string // dependency groups (PEP 735)
	required []string // requirement files
}

// detectPython detects a Python project. The venv is made by the host's python3, inside the
// workspace, so that pip never installs into the system: hosts refuse that (PEP 668).
func (s *setupScan) detectPython(dir string) (covered []string) {
	if s.hasFile(dir, "pixi.toml") && s.hasTool("pixi") {
		return nil // its environment has the packages
	}
	p, text := s.readPyproject(dir)
	if _, workspace, ok := strings.Cut(text, "[tool.uv.workspace]"); ok {
		covered = quotedMembers(workspace)
	}
	for _, lock := range []struct {
		file, tool string
		argv       []string
	}{
		{"uv.lock", "uv", slices.Concat([]string{"uv", "sync", "--frozen"}, repeatOption("--extra", p.extras), repeatOption("--group", p.groups))},
		{"poetry.lock", "poetry", []string{"poetry", "install", "--no-interaction"}},
		{"pdm.lock", "pdm", []string{"pdm", "sync"}},
		{"Pipfile.lock", "pipenv", []string{"pipenv", "sync", "--dev"}},
	} {
		if !s.hasFile(dir, lock.file) {
			continue
		}
		if s.hasTool(lock.tool) {
			s.pythonEnv(dir, lock.tool)
			s.addStep(dir, step{id: lock.tool, file: lock.file,
				why: "install the packages of the lock file into " + Venv, argv: lock.argv, registry: "pypi"})
			return covered
		}
		if p.file == "" && p.required == nil {
			s.addNote(dirFile(dir, lock.file), "could not set up: %s is not installed", lock.tool)
			return covered
		}
		s.addNote(dirFile(dir, lock.file), "not used, pip chooses versions instead: %s is not installed", lock.tool)
		break
	}
	s.addPipSteps(dir, p)
	return covered
}

// toolEnv are the variables that make a tool use Venv and the host's Python.
var toolEnv = map[string][2]string{
	"uv":     {"UV_PYTHON_DOWNLOADS", "never"},
	"poetry": {"POETRY_VIRTUALENVS_IN_PROJECT", "true"},
	"pipenv": {"PIPENV_VENV_IN_PROJECT", "1"},
	"pip":    {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
}

// pythonEnv sets what a tool and later commands need.
func (s *setupScan) pythonEnv(dir, tool string) {
	s.addPath(dir, Venv+"/bin")
	if v, ok := toolEnv[tool]; ok {
		s.setEnv(v[0], v[1])
	}
}

// addPipSteps adds the steps for projects without a lock file that a tool of the host reads.
func (s *setupScan) addPipSteps(dir string, p pyproject) {
	if p.file == "" && p.required == nil && p.groups == nil {
		return
	}
	file := p.file
	if file == "" {
		file = slices.Concat(p.required, []string{"pyproject.toml"})[0]
	}
	if !s.requireTool(dir, file, "python3") {
		return
	}
	s.pythonEnv(dir, "pip")
	made := ""
	if s.exists(dir, Venv) {
		s.addNote(dirFile(dir, Venv), "is part of the repository, and is used as it is")
	} else {
		made = s.addStep(dir, step{id: "venv", file: file, why: "make a virtual environment",
			argv: []string{"python3", "-m", "venv", Venv}})
		if made == "" {
			return
		}
	}
	pip := []string{Venv + "/bin/python", "-m", "pip", "install"}
	if p.groups != nil {
		made = s.addStep(dir, step{id: "pip-upgrade", file: file, why: "dependency groups need pip 25.1",
			argv: slices.Concat(pip, []string{"pip>=25.1"}), registry: "pypi", needs: made})
	}
	argv := slices.Concat(pip, repeatOption("-r", p.required), repeatOption("--group", p.groups))
	switch {
	case p.file != "" && len(p.extras) > 0:
		argv = append(argv, "-e", ".["+strings.Join(p.extras, ",")+"]")
	case p.file != "":
		argv = append(argv, "-e", ".")
	}
	s.addStep(dir, step{id: "pip", file: file, why: "install requirements into " + Venv, argv: argv, registry: "pypi",
		needs: made})
}

// readPyproject reads the manifests of dir, and returns the text of pyproject.toml.
func (s *setupScan) readPyproject(dir string) (p pyproject, text string) {
	text, _ = s.readText(dir, "pyproject.toml")
	keys := parseSections(text)
	_, project := keys["project"]
	_, builds := keys["build-system"]
	_, poetry := keys["tool.poetry"]
	switch {
	case project || builds || poetry:
		p.file = "pyproject.toml"
	case s.hasFile(dir, "setup.py"):
		p.file = "setup.py"
	}
	p.extras = chooseExtras(slices.Concat(keys["project.optional-dependencies"], keys["tool.poetry.extras"]))
	p.groups = chooseExtras(keys["dependency-groups"])
	if p.extras == nil && p.file != "" {
		config, _ := s.readText(dir, "setup.cfg")
		p.extras = chooseExtras(parseSections(config)["options.extras_require"])
	}
	for _, files := range requirementFiles {
		for _, file := range files {
			if s.hasFile(dir, file) {
				p.required = append(p.required, file)
				s.requirementNotes(dir, file)
				break
			}
		}
	}
	return p, text
}

// chooseExtras returns the names for tests among names, or else those for development.
func chooseExtras(names []string) []string {
	for _, wanted := range [][]string{testExtras, devExtras} {
		var chosen []string
		for _, name := range wanted {
			if slices.Contains(names, name) {
				chosen = append(chosen, name)
			}
		}
		if chosen != nil {
			return chosen
		}
	}
	return nil
}

// repeatOption returns option and word for each word.
func repeatOption(option string, words []string) []string {
	var argv []string
	for _, word := range words {
		argv = append(argv, option, word)
	}
	return argv
}

var pipElsewhere = pattern.New(`(?m)^\s*(?:-i|--index-url|--extra-index-url)[ =]|^[^#\n]*(?:\b(?:git|hg|svn|bzr)\+|https?://)`)

// requirementNotes notes requirements that do not come from the host's index.
func (s *setupScan) requirementNotes(dir, file string) {
	text, ok := s.readText(dir, file)
	if !ok {
		return
	}
	if at := pipElsewhere.FindStringIndex(text); at != nil {
		s.addNote(path.Join(dir, file), "line %d does not use the host's package index: it may not be reachable",
			1+strings.Count(text[:at[0]], "\n"))
	}
}
