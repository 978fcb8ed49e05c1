// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A script that the text itself wrote would run without being read. So what a text writes and runs is refused. What
// git, an archive or a patch of the repository puts there is the repository's, as the script was before.

// recordWrite records that the text writes file. Of one in the directory that a variable names, the name is known.
func (w *walker) recordWrite(file proposal.Word) {
	name := file.Value
	if !file.Static && file.Head != "" {
		name = file.Tail
	}
	w.countWrite(name)
	if variable := strings.TrimPrefix(file.Head, "$"); w.made[variable] {
		putInMap(&w.writesMade, variable, true)
	} else if !file.Static {
		w.writesUnknown = true
	}
}

// How tools change the files of their operands: sed -i, -ni, -Ei.bak and --in-place, perl -pi.
var (
	sedInPlace  = pattern.New(`^(-[nEersuz]*i|--i)`)
	perlInPlace = pattern.New(`^-[a-z0]*i`)
)

func editsInPlace(program string, args []arg) bool {
	inPlace := perlInPlace
	switch program {
	case "sed", "gsed":
		inPlace = sedInPlace
	case "perl", "ruby":
	default:
		return false
	}
	return slices.ContainsFunc(args, func(a arg) bool { return !a.Static || inPlace.MatchString(a.Value) })
}

// recordEdits records the files of a tool that changes them. Words that are known only at run time may be any script.
func (w *walker) recordEdits(args []arg, s scope) {
	for _, a := range args {
		if pattern := globOf(a); pattern != "" {
			w.writtenGlobs = append(w.writtenGlobs, pattern)
			continue
		}
		w.recordWrite(a.Word)
		w.writesAny = w.writesAny || !a.Static
	}
	w.writesAny = w.writesAny || slices.ContainsFunc(s.via, func(via string) bool {
		return via == "xargs" || strings.HasPrefix(via, "find")
	})
}

// globOf returns the pattern of the names of files that a has, if it is one pattern that is written literally; ""
// otherwise, and for one with a bracket, which bash reads in another way than path.Match.
func globOf(a arg) string {
	if !a.Glob || a.split || a.src == nil || hasBrace(a.src) {
		return ""
	}
	text := ""
	for _, part := range a.src.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.ContainsAny(lit.Value, `\~[`) {
			return ""
		}
		text += lit.Value
	}
	return path.Base(text)
}

// recordQueries records the files whose queries and commands sqlite3 runs, which are scripts, too.
func (w *walker) recordQueries(args []arg, c call) {
	record := func(file string, span proposal.Span) {
		putInMap(&w.scripts, path.Clean(file), append(w.scripts[path.Clean(file)], span))
	}
	for _, a := range args {
		if file, ok := strings.CutPrefix(a.Value, ".read "); ok {
			record(file, a.span)
		}
	}
	for _, r := range c.redirects {
		if r.Kind == "read" && r.Target.Static {
			record(r.Target.Value, c.span)
		}
	}
}

// mayBeScript reports whether a file may be a shell's text by its extension.
func mayBeScript(name string) bool {
	ext := path.Ext(name)
	return ext == ".sh" || ext == ".bash"
}

// checkWritten refuses files that the same text writes and runs.
func (w *walker) checkWritten() {
	w.recordLookups()
	for name, spans := range w.scripts {
		edited := w.writesAny && (w.shellFiles[name] || mayBeScript(name))
		if edited || w.isNamedInCode(name) || w.mayUnpack(name) {
			w.addWritten(spans)
		} else if w.isWritten(name) {
			w.addWritten(slices.DeleteFunc(spans, func(span proposal.Span) bool { return w.wasRead(name, span) }))
		}
	}
	for name, spans := range w.lookups {
		if w.isWrittenProgram(name) {
			w.addWritten(spans)
		}
	}
}

func (w *walker) addWritten(spans []proposal.Span) {
	for _, span := range spans {
		w.addUnknown(unknownWritten, span)
	}
}

// isWritten reports whether the text writes name, or a file of that name in another directory.
func (w *walker) isWritten(name string) bool {
	for written := range w.written { // a name may be a pattern: see followLoop
		base := path.Base(written)
		if matches, _ := path.Match(path.Base(name), base); matches || base == path.Base(name) {
			return true
		}
	}
	return slices.ContainsFunc(w.writtenGlobs, func(pattern string) bool {
		matches, err := path.Match(pattern, path.Base(name))
		return matches || err != nil || isPattern(name)
	})
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?") }

// isWrittenProgram reports whether the text writes a file that a launcher may find by name: in a directory of
// programs, or in one that is not known.
func (w *walker) isWrittenProgram(name string) bool {
	binaries := []string{"bin", ".bin"}
	anywhere := w.writesAny
	for written := range w.written {
		anywhere = anywhere || slices.Contains(binaries, path.Base(written))
	}
	for written := range w.written {
		known := strings.Contains(written, "/") && !slices.Contains(binaries, path.Base(path.Dir(written)))
		if path.Base(written) == name && (anywhere || !known) {
			return true
		}
	}
	return false
}

// interpreters run code of their words or of their standard input, which may write files.
var interpreters = pattern.New(`^(python[\d.]*|node|nodejs|bun|deno|ruby|perl|php|lua|tclsh)$`)

// codeWrites matches what code may have that writes a file.
var codeWrites = pattern.New(`(?i)["'][wax]b?\+?["']|write|append|copy|rename|replace|link|move|dump|extract|put|>`)

// isNamedInCode reports whether code of the text may write name.
func (w *walker) isNamedInCode(name string) bool {
	mayWrite := func(code proposal.Word) bool {
		return (isPattern(name) || strings.Contains(code.Value, path.Base(name))) &&
			codeWrites.MatchString(code.Value)
	}
	return slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		return interpreters.MatchString(path.Base(c.Program)) &&
			(slices.ContainsFunc(c.Args, mayWrite) || slices.ContainsFunc(c.Redirects, func(r proposal.Redirect) bool {
				return (r.Kind == "heredoc" || r.Kind == "herestring") && mayWrite(r.Target)
			}))
	})
}

// unpackers write files that their input names. Of patches, the text may show which.
var (
	unpackers = map[string]bool{
		"patch": true, "tar": true, "bsdtar": true, "unzip": true, "cpio": true, "pax": true, "split": true, "csplit": true, "7z": true, "jar": true,
		"ar": true, "unshar": true, "uudecode": true, "gunzip": true, "gzip": true, "bunzip2": true, "bzip2": true, "unxz": true, "xz": true,
		"zstd": true, "git apply": true, "git am": true, "git fast-import": true, "git unpack-file": true,
	}
	patchers = map[string]bool{"patch": true, "git apply": true, "git am": true}
)

// compressors name what they write after their operands; what they read from a pipe, they print, unless another
// option than these names files.
var (
	compressors    = pattern.New(`^(g(un)?zip|b(un)?zip2|(un)?xz|zstd)$`)
	compressOption = pattern.New(`^-[cdfkqtv\d]+$|^--(decompress|stdout|force|keep|quiet|best|fast)$`)
)

// printsPipe reports whether c only prints what it makes of its standard input.
func printsPipe(c proposal.Command) bool {
	names := func(a proposal.Word) bool { return !a.Static || !compressOption.MatchString(a.Value) }
	return compressors.MatchString(path.Base(c.Program)) && !slices.ContainsFunc(c.Args[1:], names)
}

// passers give on what a repository or a file has.
var passers = map[string]bool{"git": true, "cat": true, "zcat": true, "xzcat": true, "bzcat": true, "head": true,
	"tail": true}

// mayUnpack reports whether the text writes name by content of its own, in an archive or a patch.
func (w *walker) mayUnpack(name string) bool {
	return slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		program := path.Base(c.Program)
		if program == "git" {
			for _, word := range c.Args[1:] {
				if unpackers["git "+word.Value] {
					program = "git " + word.Value
				}
			}
		}
		if !unpackers[program] {
			return false
		}
		given, shown := w.givenText(c)
		return given && !(shown != "" && patchers[program] && !isPattern(name) &&
			!strings.Contains(shown, path.Base(name)))
	})
}

// givenText reports whether c reads what the text says, and returns it if the text shows it whole.
func (w *walker) givenText(c proposal.Command) (given bool, shown string) {
	if text, ok := hereText(c); ok {
		return true, text
	}
	if c.StdinFrom == "pipe" && !printsPipe(c) && slices.ContainsFunc(w.commands, isAuthor) {
		return true, ""
	}
	files := slices.Clone(c.Args[1:])
	for _, r := range c.Redirects {
		if r.Kind == "read" {
			files = append(files, r.Target)
		}
	}
	for _, file := range files {
		if _, value, ok := strings.Cut(file.Value, "="); ok {
			file.Value = value
		}
		if file.Value != "" && w.isWritten(file.Value) {
			return true, w.writtenText(file.Value)
		}
	}
	return false, ""
}

// hereText returns the here-document or here-string of c.
func hereText(c proposal.Command) (string, bool) {
	for _, r := range c.Redirects {
		if r.Kind == "heredoc" || r.Kind == "herestring" {
			return r.Target.Value, r.Target.Static
		}
	}
	return "", c.StdinFrom == "heredoc" || c.StdinFrom == "herestring"
}

// writtenText returns what the text writes to file, if all of it is in here-documents.
func (w *walker) writtenText(file string) string {
	all := ""
	for _, c := range w.commands {
		for _, r := range c.Redirects {
			if r.Kind == "read" || path.Base(r.Target.Value) != path.Base(file) {
				continue
			}
			text, ok := hereText(c)
			if !ok || c.Program != "cat" || len(c.Args) > 1 {
				return ""
			}
			all += text
		}
	}
	return all
}

// isAuthor reports whether c, in a pipeline, may print what the text says.
func isAuthor(c proposal.Command) bool {
	program := path.Base(c.Program)
	return slices.Contains(c.Inside, "pipeline") && !unpackers[program] &&
		(!passers[program] || c.StdinFrom == "heredoc" || c.StdinFrom == "herestring")
}

// startsFiles are programs that start one of their words.
var startsFiles = map[string]bool{
	"npx": true, "pnpx": true, "bunx": true, "npm": true, "pnpm": true, "yarn": true, "uv": true, "uvx": true, "pipx": true, "poetry": true,
	"pdm": true, "hatch": true, "rye": true, "pipenv": true, "bundle": true, "nyc": true, "c8": true, "valgrind": true,
}

// recordLookups records what the text runs by a name that may be that of a file: the programs, if it sets PATH,
// and the words of programs that start one. Words with another extension than a script's are their data.
func (w *walker) recordLookups() {
	if len(w.written) == 0 {
		return
	}
	setsPath := slices.ContainsFunc(w.commands, func(c proposal.Command) bool {
		return slices.ContainsFunc(c.Assigns, func(a proposal.Assign) bool { return a.Name == "PATH" })
	})
	for _, c := range w.commands {
		if setsPath && !c.Builtin && !c.Function && c.Program != "" {
			putInMap(&w.scripts, c.Program, append(w.scripts[c.Program], c.Span))
		}
		if !startsFiles[c.Program] {
			continue
		}
		for _, word := range c.Args[1:] {
			ext := path.Ext(word.Value)
			switch {
			case !word.Static || ext != "" && ext != ".sh":
			case setsPath || strings.Contains(word.Value, "/"):
				putInMap(&w.scripts, word.Value, append(w.scripts[word.Value], c.Span))
			default:
				putInMap(&w.lookups, word.Value, append(w.lookups[word.Value], c.Span))
			}
		}
	}
}
