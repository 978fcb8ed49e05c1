// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The rest of this file has facts about tools: which tool a file is, and which tool the
// words of a multi-call program select.

var (
	// variants are suffixes that distributions give to one of several builds of a tool.
	variants = pattern.New(`^(.+?)(\.(openbsd|traditional|netkit|inetutils|nox|basic|tiny|gtk3?|athena|distrib|real|ws|db|exe|js|cjs|mjs|py|sh|pl|rb|phar))+$`)
	vendors  = pattern.New(`^(inetutils|netkit|bsd|gnu)-(.+)$`)
)

// FileName is the plain name of the tool in the file at name.
func FileName(name string) string {
	base := path.Base(name)
	if m := variants.FindStringSubmatch(base); m != nil && !strings.HasSuffix(base, ".so") {
		base = m[1]
	}
	if m := vendors.FindStringSubmatch(base); m != nil {
		base = m[2]
	}
	switch {
	case strings.HasSuffix(base, "-cli") && len(base) > 4: // npm-cli.js, npx-cli.js
		base = strings.TrimSuffix(base, "-cli")
	case base == "sudo-rs" || base == "su-rs":
		base = strings.TrimSuffix(base, "-rs")
	}
	return ToolName(base)
}

// manifold programs are many tools in one file. They choose the tool by the name of the
// file or, if it has the program's own name, by the first word.
var manifold = []string{"busybox", "toybox", "coreutils", "sbase-box", "ubase-box"}

// readers of programs take a file as their first word that is not an option. Some of their
// options have a value, and some give the program instead of a file.
var programReaders = map[string]struct{ valued, given []string }{
	"python3": {valued: []string{"-W", "-X", "--check-hash-based-pycs"}, given: []string{"-c"}},
	"node":    {valued: []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file", "--input-type", "--title"}, given: []string{"-e", "--eval", "-p", "--print", "-pe"}},
	"ruby":    {valued: []string{"-r", "-I", "-E", "-C"}, given: []string{"-e"}},
	"perl":    {valued: []string{"-I", "-M"}, given: []string{"-e", "-E"}},
	"env":     {valued: []string{"-u", "--unset", "-C", "--chdir"}},
}

// AsksFor is the tool that x's words select, with its words. It trusts the words, which
// may be cut and are chosen by the program that starts x: a rule may deny because of them,
// and must not allow.
func AsksFor(x proposal.Exec) (string, []string) {
	tool, words := FileName(x.Path), wordsAfterProgram(x.Path, x.Argv)
	if many := ManifoldOf(points.KeyOf(x)); many != "" {
		tool, words = appletTool(many, path.Base(x.Path), x.Argv)
	}
	for range 3 { // env python3 -m twine
		if tool == "python3" && moduleIndex(words) >= 0 {
			at := moduleIndex(words)
			return words[at], words[at+1:]
		}
		r, ok := programReaders[tool]
		if !ok {
			return tool, words
		}
		at := programWord(words, r.valued, r.given)
		if at < 0 {
			return tool, words
		}
		tool, words = FileName(words[at]), words[at+1:]
	}
	return tool, words
}

// wordsAfterProgram are the words after the program's own name, or after the path of a script that
// the kernel passed to its interpreter.
func wordsAfterProgram(path string, argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if at := slices.Index(argv[:min(len(argv), 4)], path); at > 0 {
		return argv[at+1:]
	}
	return argv[1:]
}

// ManifoldOf is the manifold program that the file of k is, by its name or as a copy of
// one, or "".
func ManifoldOf(k points.ExecKey) string {
	for _, name := range append([]string{k.Path}, k.Same...) {
		name = FileName(name)
		for _, many := range manifold {
			if strings.HasPrefix(name, many) { // busybox-static, busybox2
				return many
			}
		}
	}
	return ""
}

// appletTool is the tool that a manifold program in the file own becomes. A leading dash marks
// a login shell. busybox takes each name that begins with its own for its own name. The
// file's own name is checked separately; if it is not the name of a tool, some programs
// use the next word.
func appletTool(tool, own string, argv []string) (string, []string) {
	for len(argv) > 0 {
		name := strings.TrimPrefix(path.Base(argv[0]), "-")
		if !strings.HasPrefix(name, tool) && (name != own || len(argv) == 1) {
			return FileName(name), argv[1:]
		}
		argv = argv[1:]
	}
	return tool, nil
}

// moduleIndex is the index of the module after python's -m, or -1.
func moduleIndex(words []string) int {
	for i, word := range words {
		switch {
		case word == "-m" && i+1 < len(words):
			return i + 1
		case word == "-c" || !strings.HasPrefix(word, "-"):
			return -1
		}
	}
	return -1
}

// programWord is the index of the first word that is not an option, or -1.
func programWord(words, valued, given []string) int {
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case slices.Contains(given, word):
			return -1
		case slices.Contains(valued, word):
			i++
		case strings.HasPrefix(word, "-") || strings.Contains(word, "=") && !strings.Contains(word, "/"):
		default:
			return i
		}
	}
	return -1
}

// SubcommandOf is the subcommand among words according to the tool's grammar, or the first word
// that is not an option.
func (gs Grammars) SubcommandOf(tool string, words []string) string {
	if g := gs[tool]; g != nil && g.sub {
		args := make([]proposal.Word, len(words))
		for i, word := range words {
			args[i] = proposal.Word{Value: word, Static: true}
		}
		if len(args) > 0 && strings.HasPrefix(words[0], "+") { // cargo +nightly
			args = args[1:]
		}
		return gs.Read(program{tool, "lookup"}, args).Sub
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "-") {
			return word
		}
	}
	return ""
}
