// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package facts

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/optiontext"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// minTools and minOptions are exceeded on a machine with what .ci/run installs, also without manual pages.
const (
	minTools   = 200
	minOptions = 5000
)

// verbs are the subcommands that are compared, by tool; those of git are what policy allows.
var verbs = map[string][]string{
	"go":      {"build", "clean", "doc", "env", "fmt", "generate", "list", "run", "test", "vet", "fix", "work", "mod"},
	"npm":     {"ci", "install", "ls", "run", "test", "exec", "outdated", "pack", "prune", "rebuild", "explain", "query", "start", "dedupe"},
	"cargo":   {"build", "check", "test", "bench", "run", "doc", "clean", "clippy", "fmt", "fix", "tree", "metadata", "fetch", "generate-lockfile", "locate-project", "pkgid", "read-manifest", "rustc", "rustdoc", "verify-project", "version", "vendor", "package", "report"},
	"pip3":    {"install", "list", "show", "check", "freeze", "wheel", "inspect"},
	"openssl": {"version", "x509", "dgst", "verify", "asn1parse", "crl", "pkey", "rsa", "ec", "req", "base64", "s_client"},
}

// joined are the tools, or subcommands, that take some values only attached, and whose texts do not
// say which.
var joined = setOf("gcc", "g++", "cc", "c++", "clang", "clang++", "node", "valgrind",
	"git log", "git show", "git diff", "git rev-list", "git whatchanged", "git diff-tree", "git diff-index", "git diff-files", "git range-diff", "git shortlog", "git format-patch", "phpunit")

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// different are options that a text shows otherwise than the tool reads them, and why.
var different = map[string]string{
	"ls -p": valueNamed, "dir -p": valueNamed, "ptx -O": valueNamed, "ptx -T": valueNamed, "sort -c": valueNamed, "sort -C": valueNamed, "sort --check": valueNamed,
	"php --rfunction": unwritten, "php --rclass": unwritten, "php --rextension": unwritten, "php --rextinfo": unwritten, "git submodule --depth": unwritten,
	"git submodule -n": unwritten, "prove --ext": unwritten, "prove --formatter": unwritten, "prove --harness": unwritten, "prove -I": unwritten, "prove -M": unwritten, "prove -P": unwritten,
	"phpunit --testdox-group": unwritten, "phpunit --testdox-exclude-group": unwritten, "rustdoc --cfg": unwritten, "rustdoc --check-cfg": unwritten, "unzip -x": unwritten, "zip -x": unwritten, "file -P": unwritten,
	"file --parameter": unwritten, "hostname -F": unwritten, "hostname --file": unwritten, "ld -O": unwritten, "pkg-config --atleast-version": unwritten, "pkg-config --exact-version": unwritten,
	"pkg-config --max-version": unwritten, "pkg-config --atleast-pkgconfig-version": unwritten, "prove --rules": unwritten, "prove --source": unwritten, "git shortlog --committer": unwritten,
	"git diff -B": unwritten, "git diff -C": unwritten, "git diff -M": unwritten, "git diff-tree -B": unwritten, "git diff-tree -C": unwritten, "git diff-tree -M": unwritten,
	"git diff-index -B": unwritten, "git diff-index -C": unwritten, "git diff-index -M": unwritten, "git diff-files -B": unwritten, "git diff-files -C": unwritten, "git diff-files -M": unwritten,
	"objdump --dwarf": oneValue, "readelf --debug-dump": oneValue, "strace --quiet": oneValue, "strace -x": "-x is none; the help joins it with --strings-in-hex",
	"node --experimental-wasm-modules": "its help describes it with two words", "getconf -v": unwritten,
	"ld --start-group":           "the archives up to --end-group are operands",
	"pgrep -q":                   "the page is that of pkill, too, and only pkill has it",
	"yq -s":                      "two programs have this name, and that of the other names files that are written",
	"openssl pkey -cipher":       "in the text it is the name of any cipher: -aes256",
	"git reflog -n":              "the text is that of expire; show reads it as log does",
	"npm query --expect-results": "the usage joins it with --expect-result-count, which has the value",
	"phpunit --colors":           "phpunit takes its value only attached",
}

const (
	valueNamed = "the text names what it means as a value of the long option, and it has none"
	unwritten  = "it has a value, which the text does not write"
	oneValue   = "its value is optional, and the help lists the option with each value"
)

// elsewhere are tools that have no options in options.txt, and where their words are read.
var elsewhere = map[string]string{
	"env": wrapped, "timeout": wrapped, "nice": wrapped, "ionice": wrapped, "nohup": wrapped, "setsid": wrapped, "xargs": wrapped, "time": wrapped, "taskset": wrapped, "chrt": wrapped, "prlimit": wrapped,
	"bash": "internal/shell/parse/shell.go", "sh": "internal/shell/parse/shell.go", "dash": "internal/shell/parse/shell.go", "find": "internal/shell/parse/find.go and command/find.rego",
	"sqlite3": "command/sqlite.rego; TestE2EOptionsInRulesAreThoseOfTheTools of internal/policy",
	"ps":      "command/secrets.rego", "flask": "running_option in command/programs.rego",
	"echo": data, "printf": data, "test": data, "[": data, "expr": data, "true": data, "false": data, "yes": data, "errno": data,
}

const (
	wrapped = "internal/shell/parse/option.go; TestE2EWrapperOptionsAreThoseOfTheTools there"
	data    = "its words are data, whatever they begin with"
)

// onlyPage are tools whose help has no options. They are not compared where the page is not installed.
var onlyPage = setOf("c++filt", "getconf", "git", "git rev-parse", "git var", "git reflog", "git stash", "git worktree", "git notes", "git bisect", "git submodule", "mawk", "openssl", "perf", "pidof", "which")

// noOptions are tools of which no text has options, and why.
var noOptions = map[string]string{
	"go":                  "go help lists commands; -C is among the options of each",
	"npm":                 "npm --help lists commands; it has the options of each",
	"git version":         "--build-options is not of interest, and not listed",
	"git sparse-checkout": "its subcommands have the options, and all but list are denied",
	"tclsh":               "tclsh has no options but -encoding, which its page has in the synopsis",
}

// allowedTools are those of the default allow-list.
func allowedTools(t *testing.T) (names []string) {
	t.Helper()
	text, err := policies.FS.ReadFile("lib/programs.rego")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range regexp.MustCompile(`(?s)\n(readers|wrappers|runners|changers|judged) := \{\n(.*?)\n\}`).FindAllStringSubmatch(string(text), -1) {
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(set[2], -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestE2EOptionsAreThoseOfTheTools(t *testing.T) {
	// The distribution's tools and Go's: what else a machine has is of any version.
	t.Setenv("PATH", "/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	grammars, err := ShippedGrammars()
	if err != nil {
		t.Fatal(err)
	}
	gitVerbs, err := policies.FS.ReadFile("command/git.rego")
	if err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`(?s)git_reads := \{(.*?)\n\}`).FindSubmatch(gitVerbs)
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(set[1], -1) {
		verbs["git"] = append(verbs["git"], string(m[1]))
	}
	var absent []string
	compared, options := 0, 0
	for _, name := range allowedTools(t) {
		tool := ToolName(name)
		if _, err := exec.LookPath(name); err != nil {
			absent = append(absent, name)
			continue
		}
		for _, verb := range append([]string{""}, verbs[tool]...) {
			g, full := grammars[tool], strings.TrimSpace(tool+" "+verb)
			if verb != "" {
				if g = grammars[full]; g == nil {
					g = grammars[tool+" *"]
				}
			}
			if g == nil {
				g = grammars[anyTool]
			}
			if g.style == styleFree && len(g.names) == 0 {
				if elsewhere[name] == "" {
					t.Errorf("%s: it has no options here: say in elsewhere where they are read", name)
				}
				continue
			}
			n, problems := 0, []string{}
			all, sources := optiontext.ReadTool(t, strings.TrimSpace(name+" "+verb))
			for _, option := range slices.Sorted(maps.Keys(all)) {
				if !g.isListed(option) {
					continue
				}
				n++
				if problem := g.compare(option, all[option], joined[tool] || joined[full]); problem != "" && !g.isPrefix(option, all) && different[full+" "+option] == "" {
					problems = append(problems, problem)
				}
			}
			problems = append(problems, g.compareAbbreviations(all)...)
			for _, p := range problems {
				t.Errorf("%s: %s", full, p)
			}
			t.Logf("%s: %d options, %d compared, from %q", full, len(all), n, sources)
			hasPage := slices.ContainsFunc(sources, func(source string) bool { return strings.HasPrefix(source, "man ") })
			if n == 0 && noOptions[full] == "" && (hasPage || !onlyPage[full]) {
				t.Errorf("%s: no option was found in %q: read another text, or say in noOptions why there is none", full, sources)
			}
			if n > 0 {
				compared++
				options += n
			}
		}
	}
	t.Logf("%d tools and subcommands, %d options; not installed: %q", compared, options, absent)
	if compared < minTools || options < minOptions {
		t.Errorf("only %d tools and subcommands with %d options were compared", compared, options)
	}
}

// word is a value that no option table has.
const word = "fumevalue"

func staticWords(texts ...string) (words []proposal.Word) {
	for _, text := range texts {
		words = append(words, proposal.Word{Value: text, Static: true})
	}
	return words
}

// isListed reports whether g has the option name as commands have it.
func (g *grammar) isListed(name string) bool {
	switch {
	case g.style == styleSingle || g.style == styleMixed:
		name = "-" + strings.TrimLeft(name, "-")
	case len(name) == 2:
		_, ok := g.names[name]
		return ok
	case !strings.HasPrefix(name, "--"):
		_, ok := g.names[name]
		return ok || g.listedPrefix(name) != ""
	}
	_, ok := g.lookupOption(name)
	return ok
}

// compare reads an option as commands have it, and says how that differs from each of the forms of
// the tool's text. joined says that the tool takes a value that its text attaches only so.
func (g *grammar) compare(name string, forms []optiontext.Shape, joined bool) (problem string) {
	front := *g
	front.rest = ""
	var apart, together reading
	apart.scanWords(&front, staticWords(name, word, word, "operand"))
	if slices.ContainsFunc(apart.Options, func(o option) bool { return o.effect == markRest || o.effect == markTool }) {
		return "" // all that follows is another program's
	}
	taken := 3 - len(apart.Operands)
	value := false
	short := len(name) == 2 && (g.style == styleGNU || g.style == stylePOSIX)
	if short {
		together.scanWords(&front, staticWords(name+name[1:]+name[1:]))
		value = together.Options[0].Value.Value != ""
	} else {
		together.scanWords(&front, staticWords(name+"="+word))
		value = together.Options[0].Value.Value == word
	}
	for _, form := range forms {
		switch form {
		case optiontext.None:
			if taken == 0 && !(value && short) {
				return ""
			}
		case optiontext.Next:
			if taken == 1 {
				return ""
			}
		case optiontext.Attached:
			if (taken == 1 || joined) && value {
				return ""
			}
		case optiontext.Optional:
			if taken == 0 && value {
				return ""
			}
		case optiontext.LongOptional:
			if taken == 0 {
				return ""
			}
		case optiontext.Free:
			if taken <= 1 {
				return ""
			}
		case optiontext.Two:
			if taken == 2 {
				return ""
			}
		}
	}
	return fmt.Sprintf("%s has %s in its text, and is read with %d words, attached: %v", name, fmt.Sprintf("%q", forms), taken, value)
}

// isPrefix reports whether the text lists the values of a one-letter option as options: -O0, -Wall.
func (g *grammar) isPrefix(name string, all optiontext.Options) bool {
	if g.names[name].value != '?' || len(name) > 2 {
		return false
	}
	for other := range all {
		if len(other) > 2 && strings.HasPrefix(other, name) {
			return true
		}
	}
	return false
}

// compareAbbreviations checks that what the tool reads as the beginning of one of its options is not
// read as another.
func (g *grammar) compareAbbreviations(all optiontext.Options) (problems []string) {
	if g.style != styleGNU && g.style != stylePOSIX {
		return nil
	}
	for name := range all {
		if len(name) < 5 || !strings.HasPrefix(name, "--") || g.names[name].canonical == "" {
			continue
		}
		for end := 4; end < len(name); end++ {
			begin := name[:end]
			others := 0
			for other := range all {
				if strings.HasPrefix(other, begin) {
					others++
				}
			}
			if others > 1 {
				continue
			}
			spec, ok := g.lookupOption(begin)
			if _, exact := g.names[begin]; exact {
				continue // in another version, or after another verb
			}
			if own := g.names[name]; ok && spec.effect != markRuns && (spec.canonical != own.canonical && spec.canonical != begin || spec.value != own.value) {
				problems = append(problems, fmt.Sprintf("%s means %s, and is read as %s%c", begin, name, spec.canonical, spec.value))
				break
			}
		}
	}
	slices.Sort(problems)
	return problems
}
