// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/toolchain"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Requirement is the oldest version of a toolchain that a file of the repository accepts.
type Requirement struct {
	Tool  string // "node", "python", "go", "rust", "ruby" or "java"
	File  string // relative to the root
	Wants string // what the file says, in the characters of versions and ranges
	least release
}

// A release is a version of up to four numbers; missing ones are 0.
type release [4]int

// String returns v without zeros at its end.
func (v release) String() string {
	text := strconv.Itoa(v[0])
	for i := 1; i < len(v) && slices.Max(v[i:]) > 0; i++ {
		text += "." + strconv.Itoa(v[i])
	}
	return text
}

func (v release) compare(w release) int { return slices.Compare(v[:], w[:]) }

// ToolFiles are the files that Requirements reads, in each of its directories.
var ToolFiles = []string{
	"package.json", ".nvmrc", ".node-version", "pyproject.toml", ".python-version", "go.mod", "Cargo.toml", "rust-toolchain.toml", "rust-toolchain",
	"Gemfile", ".ruby-version", ".java-version", ".tool-versions", "mise.toml", ".mise.toml",
}

// FileReader returns a reader of the files of root for Requirements. It follows no links.
func FileReader(root fs.FS) func(file string) (text string, ok bool) {
	s := &setupScan{root: root}
	return func(file string) (string, bool) { return s.readText(".", file) }
}

// ReadRequirements returns what the files in directories ask of toolchains: of each
// toolchain the highest of the oldest versions that they accept, sorted by Tool. What is not
// understood asks for nothing. Exact versions of files such as .nvmrc ask for their major version,
// or for their first two numbers where these matter: a patch that is missing is seldom why a
// command fails. read returns the text of a file, or false if there is none.
func ReadRequirements(read func(file string) (text string, ok bool), dirs ...string) []Requirement {
	highest := map[string]Requirement{}
	for _, dir := range dirs {
		for _, file := range ToolFiles {
			text, ok := read(path.Join(dir, file))
			if !ok {
				continue
			}
			for _, r := range readRequirements(file, text) {
				if r.File = dirFile(dir, file); r.least.compare(highest[r.Tool].least) > 0 {
					highest[r.Tool] = r
				}
			}
		}
	}
	var list []Requirement
	for _, r := range highest {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b Requirement) int { return cmp.Compare(a.Tool, b.Tool) })
	return list
}

var (
	requiresPython = pattern.New(`(?m)^[ \t]*requires-python[ \t]*=[ \t]*["']([^"'\n]{1,80})["']`)
	poetryPython   = pattern.New(`(?m)^\[tool\.poetry\.dependencies\][^\[]*?\n[ \t]*python[ \t]*=[ \t]*["']([^"'\n]{1,80})["']`)
	goDirective    = pattern.New(`(?m)^go[ \t]+([0-9][0-9.]{0,20})[a-z0-9]*[ \t]*(?://.*)?$`)
	rustVersion    = pattern.New(`(?m)^[ \t]*rust-version[ \t]*=[ \t]*"([^"\n]{1,40})"`)
	rustChannel    = pattern.New(`(?m)^[ \t]*channel[ \t]*=[ \t]*"([^"\n]{1,40})"`)
	gemfileRuby    = pattern.New(`(?m)^[ \t]*ruby[ \t(]+["']([^"'\n]{1,40})["']`)
	toolLine       = pattern.New(`(?m)^[ \t]*"?(nodejs|node|python|golang|go|rust|ruby|java)"?(?:[ \t]*=[ \t]*\[?[ \t]*"|[ \t]+)([^\s"#]{1,40})`)
)

// readRequirements returns what the text of a file asks for.
func readRequirements(file, text string) (list []Requirement) {
	add := func(tool, wants string, least func(string) (release, bool)) {
		if wants = strings.TrimSpace(wants); len(wants) > maxWants {
			return
		}
		if v, ok := least(wants); ok && v != (release{}) {
			list = append(list, Requirement{Tool: tool, Wants: wants, least: v})
		}
	}
	found := func(p *pattern.Pattern) string {
		if m := p.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch file {
	case "package.json":
		var m struct {
			Engines, Volta struct {
				Node any `json:"node"`
			}
		}
		_ = json.Unmarshal([]byte(text), &m) // what it cannot be read as stays zero
		if wants, ok := m.Engines.Node.(string); ok {
			add("node", wants, nodeRange)
		}
		if wants, ok := m.Volta.Node.(string); ok {
			add("node", wants, pinOf("node"))
		}
	case ".nvmrc", ".node-version":
		add("node", line, pinOf("node"))
	case "pyproject.toml":
		add("python", found(requiresPython), pythonRange)
		add("python", found(poetryPython), pythonRange)
	case ".python-version":
		add("python", line, pinOf("python"))
	case "go.mod":
		add("go", found(goDirective), parseRelease)
	case "Cargo.toml":
		add("rust", found(rustVersion), parseRelease)
	case "rust-toolchain.toml":
		add("rust", found(rustChannel), pinOf("rust"))
	case "rust-toolchain":
		add("rust", cmp.Or(found(rustChannel), line), pinOf("rust"))
	case "Gemfile":
		add("ruby", found(gemfileRuby), pythonRange) // ~> means what ~= does
	case ".ruby-version":
		add("ruby", line, pinOf("ruby"))
	case ".java-version":
		add("java", line, pinOf("java"))
	case ".tool-versions", "mise.toml", ".mise.toml":
		if file != ".tool-versions" {
			_, text, _ = strings.Cut(text, "[tools]")
			text, _, _ = strings.Cut(text, "\n[")
		}
		for _, m := range toolLine.FindAllStringSubmatch(text, 32) {
			tool := cmp.Or(map[string]string{"nodejs": "node", "golang": "go"}[m[1]], m[1])
			add(tool, m[2], pinOf(tool))
		}
	}
	return list
}

var (
	plainNumber = pattern.New(`^[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}$`)
	exactNumber = pattern.New(`^(?:v|ruby-)?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})(?:[+_-][0-9A-Za-z.+_-]{0,30})?$`)
	vendor      = pattern.New(`^[a-z]+-`)
	comparator  = pattern.New(`^(~>|~=|===?|!=|>=|<=|[\^~><]|)[v=]?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})((?:\.[xX*]){0,2})(?:-?[0-9A-Za-z+.-]{0,20})$`)
	operators   = pattern.New(`(~>|~=|===?|!=|>=|<=|[\^~><])\s+`)
	hyphens     = pattern.New(`^(\S+)\s+-\s+(\S+)$`)
)

// parseRelease reads a version that is the oldest one.
func parseRelease(text string) (release, bool) {
	if !plainNumber.MatchString(text) {
		return release{}, false
	}
	var v release
	for i, part := range strings.Split(text, ".") {
		v[i], _ = strconv.Atoi(part)
	}
	return v, true
}

// pinOf returns a reader of an exact version of a tool.
func pinOf(tool string) func(string) (release, bool) {
	return func(text string) (release, bool) {
		if tool == "java" {
			text = text[len(vendor.FindString(text)):]
		}
		m := exactNumber.FindStringSubmatch(text)
		if m == nil {
			return release{}, false
		}
		v, ok := parseRelease(m[1])
		kept := 2
		if tool == "node" || tool == "java" {
			kept = 1
		}
		if tool == "java" && v[0] == 1 { // 1.8 is 8
			v[0] = v[1]
		}
		clear(v[kept:])
		return v, ok
	}
}

func nodeRange(text string) (release, bool)   { return lowestRelease(text, true) }
func pythonRange(text string) (release, bool) { return lowestRelease(text, false) }

// maxWants bounds a range, in bytes.
const maxWants = 120

// lowestRelease returns the oldest version of a range: node's, or a specifier of PEP 440 or of Bundler.
// Alternatives are separated by ||, and comparators by blanks or commas; of each alternative the
// highest lower bound counts. ok is false if a part is not understood. wholeParts means that >18
// excludes all of 18.
func lowestRelease(text string, wholeParts bool) (least release, ok bool) {
	for i, alternative := range strings.Split(text, "||") {
		alternative = operators.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(alternative, ",", " ")), "$1")
		if m := hyphens.FindStringSubmatch(alternative); m != nil {
			alternative = ">=" + m[1] + " <=" + m[2]
		}
		var bound release
		for word := range strings.FieldsSeq(alternative) {
			if word == "*" || word == "x" || word == "X" {
				continue
			}
			v, ok := lowerBound(word, wholeParts)
			if !ok {
				return release{}, false
			}
			if v.compare(bound) > 0 {
				bound = v
			}
		}
		if i == 0 || bound.compare(least) < 0 {
			least = bound
		}
	}
	return least, true
}

// lowerBound returns the oldest version that one comparator accepts.
func lowerBound(word string, wholeParts bool) (release, bool) {
	m := comparator.FindStringSubmatch(word)
	if m == nil {
		return release{}, false
	}
	v, ok := parseRelease(m[2])
	switch m[1] {
	case "<", "<=", "!=":
		return release{}, ok
	case ">":
		if parts := strings.Count(m[2], ".") + 1; wholeParts {
			v[parts-1]++
		}
	}
	return v, ok
}

// MinVersion returns the oldest version that r accepts: "22", "3.10".
func (r Requirement) MinVersion() string { return r.least.String() }

// WorkflowStep returns the step of a workflow that installs the tool, in YAML's flow style, or "".
func (r Requirement) WorkflowStep() string { return toolchain.InstallStep(r.Tool, r.MinVersion()) }

// IsMetBy reports whether a version of the tool is not too old. It is true for one that cannot be
// read.
func (r Requirement) IsMetBy(text string) bool {
	m := installedNumber.FindString(text)
	v, ok := parseRelease(m)
	if r.Tool == "java" && v[0] == 1 {
		v[0], v[1] = v[1], 0
	}
	return !ok || v.compare(r.least) >= 0
}

var installedNumber = pattern.New(`^[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}`)

// FindUnmet returns the requirements of a workspace that the toolchains do not meet. base are those of
// the pull request's base; the workspace's own if there is no pull request.
func FindUnmet(head, base []Requirement, toolchains []proposal.Toolchain) (list []proposal.Unmet) {
	for _, r := range head {
		u := proposal.Unmet{Tool: r.Tool, File: r.File, Wants: r.Wants, Least: r.MinVersion()}
		if i := slices.IndexFunc(toolchains,
			func(t proposal.Toolchain) bool { return t.Name == toolchain.Tools[r.Tool].Toolchain }); i >= 0 {
			if u.Version = toolchains[i].Version; u.Version == "" || r.IsMetBy(u.Version) {
				continue
			}
		}
		u.Base = slices.ContainsFunc(base,
			func(b Requirement) bool { return b.Tool == r.Tool && (u.Version == "" || !b.IsMetBy(u.Version)) })
		list = append(list, u)
	}
	return list
}
