// SPDX-License-Identifier: Apache-2.0

// Package optiontext reads which options a tool has, and which of them take a value, from what the
// tool prints about itself and from its manual page. Tests compare tables of options with it.
package optiontext

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Shape is how an option takes its value in a tool's own text.
type Shape string

const (
	None         Shape = ""
	Next         Shape = "a value in the next word, or attached"
	Attached     Shape = "a value that the text attaches" // -S<text>, --lines=NUM: getopt takes the next word, too
	Optional     Shape = "an optional value that is attached"
	LongOptional Shape = "the long option's optional value" // which most tools do not read after the short one
	Free         Shape = "an optional value in the next word"
	Two          Shape = "two values"
)

// Options are the shapes that a text has for each option; several if it has the option in several lines.
type Options map[string][]Shape

func (o Options) addShape(name string, of Shape) {
	if !slices.Contains(o[name], of) {
		o[name] = append(o[name], of)
	}
}

var (
	optionName  = regexp.MustCompile(`^(--?)(\[no-\])?([A-Za-z0-9?@#][\w+-]*(?:\.[\w+-]+)*|-|0)`)
	optionValue = regexp.MustCompile(`^(?:((?:/?\[(?:=|:|<|/|[A-Z#]|\w+\])[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])+)|( \[[^\]]*\](?:\.\.\.)?|=\[[^\]]{2,}\])` +
		`|([=:]?<[^>]*>(?:[:=,]?(?:\.\.\.|<[^>]*>))*|=[^\s,|]+|[A-Z]{2,}[\w/]*)` +
		`|( (?:<[^>]*>|\{[^}]*\}|"[^"]*"|[A-Z][A-Z0-9_,:|.=/-]*|[a-z](?:[\w/:.=-]*\w)?)(?: ?\.\.\.)?))`)
	secondValue = regexp.MustCompile(`^ (?:<[^>]*>|[A-Z][A-Z0-9_-]*|[a-z]\w*)`)
	optionJoin  = regexp.MustCompile(`^(?:(?:, ?| ?\| ?|/| or | |; )-|  --)`)
	optionEnd   = regexp.MustCompile(`^(?:$|\s{2,}|\t| ?: ?| - |\.\.\.| [A-Z][a-z])`)
)

// ReadOptions reads the lines of text that begin with options and describe them.
func ReadOptions(text string) Options {
	found := Options{}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(strings.TrimLeft(line, " \t"), " \r")
		if strings.HasPrefix(line, "-") {
			readDefinition(found, line)
		}
	}
	return found
}

// readDefinition reads "-n, --lines=[-]NUM  print…". An option without a value has that of a later one.
func readDefinition(found Options, line string) {
	type definition struct {
		names []string
		of    Shape
	}
	var all []definition
	for {
		m := optionName.FindStringSubmatch(line)
		if m == nil {
			return
		}
		line = line[len(m[0]):]
		d := definition{names: []string{m[1] + m[3]}}
		if m[2] != "" {
			found.addShape("--no-"+m[3], None)
		}
		d.of, line = readValue(line)
		all = append(all, d)
		j := optionJoin.FindString(line)
		if j == "" {
			break
		}
		line = line[len(strings.TrimRight(j, "-")):]
	}
	if !optionEnd.MatchString(line) {
		return
	}
	last := None
	for _, d := range slices.Backward(all) {
		own := cmp.Or(d.of, last)
		for _, name := range d.names {
			found.addShape(name, own)
		}
		if d.of != None && (len(all) < 2 || strings.HasPrefix(d.names[0], "--")) {
			if last = d.of; last == Optional {
				last = LongOptional
			}
		}
	}
}

// readValue reads what comes after an option's name.
func readValue(line string) (of Shape, rest string) {
	v := optionValue.FindStringSubmatch(line)
	if v == nil {
		return None, line
	}
	rest = line[len(v[0]):]
	switch {
	case v[1] != "":
		return Optional, rest
	case v[2] != "":
		return Free, rest
	case v[3] != "":
		return Attached, rest
	}
	if second := secondValue.FindString(rest); second != "" && optionEnd.MatchString(rest[len(second):]) {
		return Two, rest[len(second):]
	}
	if word := v[4][1]; word >= 'a' && word <= 'z' && !optionEnd.MatchString(rest) && !optionJoin.MatchString(rest) {
		return None, line // a description
	}
	return Next, rest
}

// asked is what a tool is asked for its options, if that is not --help; {} is its name, or those of
// tool and subcommand.
var asked = map[string][]string{
	"git":       {"git -h"},
	"git *":     {"{} -h"},
	"go":        {"go help"},
	"go *":      {"go help {verb}", "go help build", "go help testflag"},
	"npm *":     {"{} -h"},
	"openssl *": {"{} -help"},
	"zgrep":     {"grep --help"}, // "OPTIONs are the same as for 'grep'"
}

// ReadTool reads what an installed tool prints about itself, and its manual page if that is installed.
// name may have a subcommand: "git log". sources are the questions that were answered.
func ReadTool(t testing.TB, name string) (all Options, sources []string) {
	t.Helper()
	texts := textsOf(t, name)
	all = Options{}
	sources = slices.Sorted(maps.Keys(texts))
	for _, source := range sources {
		for option, forms := range ReadOptions(texts[source]) {
			for _, form := range forms {
				all.addShape(option, form)
			}
		}
	}
	return all, sources
}

// ReadOutput reads what a command, such as "curl --help all", prints.
func ReadOutput(t testing.TB, command string) Options {
	t.Helper()
	return ReadOptions(runTool(t, strings.Fields(command)...))
}

func textsOf(t testing.TB, name string) (texts map[string]string) {
	t.Helper()
	words := strings.Fields(name)
	questions, ok := asked[name]
	if !ok && len(words) == 2 {
		questions, ok = asked[words[0]+" *"]
	}
	if !ok {
		questions = []string{"{} --help"}
	}
	texts = map[string]string{}
	for _, q := range questions {
		q = strings.ReplaceAll(strings.ReplaceAll(q, "{}", name), "{verb}", words[len(words)-1])
		if out := runTool(t, strings.Fields(q)...); out != "" {
			if texts[q] = out; words[0] == "npm" || words[0] == "npx" {
				texts[q] = splitUsage(out)
			}
		}
	}
	if page := manualPage(t, strings.Join(words, "-")); page != "" {
		texts["man "+strings.Join(words, "-")] = page
	}
	return texts
}

// splitUsage returns the groups in brackets in the usage of npm, one on each line: only there
// do its options have values.
func splitUsage(text string) string {
	var lines []string
	for _, group := range regexp.MustCompile(`\[([^\[\]]+)`).FindAllStringSubmatch(text, -1) {
		lines = append(lines, strings.TrimSpace(group[1]))
	}
	return strings.Join(lines, "\n")
}

func runTool(t testing.TB, argv ...string) string {
	t.Helper()
	if argv[0] == "git" {
		argv = append([]string{"git", "-c", "safe.directory=*", "-c", "core.pager=cat"}, argv[1:]...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "LC_ALL=C.UTF-8", "COLUMNS=200", "PAGER=cat",
		"GOFLAGS=-mod=mod", "TERM=dumb"}
	for name, dir := range map[string]string{"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"} {
		if home, err := os.UserHomeDir(); err == nil {
			cmd.Env = append(cmd.Env, name+"="+filepath.Join(home, dir))
		}
	}
	if argv[0] == "git" {
		_ = exec.Command("git", "init", "-q", cmd.Dir).Run()
	}
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func manualPage(t testing.TB, name string) string {
	t.Helper()
	for _, pattern := range []string{"man1/" + name + ".1.gz", "man1/" + name + ".1*.gz", "man8/" + name + ".8.gz"} {
		files, _ := filepath.Glob("/usr/share/man/" + pattern)
		for _, file := range files {
			return renderPage(t, file)
		}
	}
	return ""
}

func renderPage(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var source bytes.Buffer
	if _, err := source.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	if other, ok := strings.CutPrefix(strings.TrimSpace(source.String()), ".so "); ok &&
		!strings.Contains(other, "\n") {
		return renderPage(t, filepath.Join("/usr/share/man", other)+".gz")
	}
	cmd := exec.Command("groff", "-t", "-mandoc", "-Tascii", "-P-cbou", "-rLL=200n", "-rLT=200n")
	cmd.Stdin = &source
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(out)
}
