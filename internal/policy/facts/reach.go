// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Effect is one thing that words make their tool do: run something that the text does
// not show, or write a file.
type Effect struct {
	Kind   string `json:"kind" enum:"effect"` // what happens; code: the value is a program's text
	Name   string `json:"name"`               // the option, or "" for an operand
	Value  string `json:"value"`              // the file or the text
	Static bool   `json:"static"`             // it is known before run time; else value is its beginning
	Place  string `json:"place" enum:"place"` // where the value leads if it is a path
}

// Effects are the effects of the words of r, in any of cwds.
func (r *reading) Effects(cwds []string, workspace Workspace) []Effect {
	var all []Effect
	add := func(kind, name string, w proposal.Word) {
		place := ResolvePlace(w.Value, w.Static, cwds, workspace)
		if kind == "write" {
			place = WrittenPlace(w.Value, w.Static, cwds, workspace)
		}
		all = append(all, Effect{kind, name, w.Value, w.Static, place})
	}
	addGuarded := func(name string, w proposal.Word, parts []string) {
		for _, part := range parts {
			place := ResolvePlace(part, w.Static, cwds, workspace)
			if place == "git" || place == "control" {
				all = append(all, Effect{"write", name, part, w.Static, place})
			}
		}
	}
	for _, o := range r.Options {
		switch o.effect {
		case markRuns:
			add("run", o.Name, o.Value)
		case markWrites:
			if o.Value.Value != "-" && (o.Value.Value != "" || !o.Value.Static) {
				add("write", o.Name, o.Value)
				addGuarded(o.Name, o.Value, pathsIn(o.Value.Value)[1:]) // json:FILE
			}
		case markCode, markRest:
			add("code", o.Name, o.Value)
		}
	}
	for i, w := range r.Operands {
		if r.writesOperand(i) && w.Value != "-" {
			add("write", "", w)
		}
	}
	for _, w := range r.madeFiles(cwds, workspace) { // what is outside is judged by the words
		if place := ResolvePlace(w.Value, true, cwds, workspace); place == "git" || place == "control" {
			add("write", "", w)
		}
	}
	for _, w := range r.hiddenNames(cwds, workspace) {
		all = append(all, Effect{"write", "", w.Value, false, "control"})
	}
	for _, w := range r.doubtful {
		addGuarded(r.Tool, w, pathsIn(w.Value))
	}
	return all
}

// copied returns what a tool copies, moves or links, and the directory or the file that it makes of that.
func (r *reading) copied() (sources []proposal.Word, made proposal.Word) {
	if !slices.Contains([]string{"cp", "mv", "ln", "install"}, r.Tool) {
		return nil, made
	}
	for _, o := range r.Options {
		switch {
		case o.Name == "--target-directory":
			return r.Operands, o.Value
		case o.Name == "--directory" && r.Tool == "install":
			return nil, made
		}
	}
	switch last := len(r.Operands) - 1; last {
	case -1:
		return nil, made
	case 0:
		return r.Operands, proposal.Word{Value: ".", Static: true} // of ln FILE
	default:
		return r.Operands[:last], r.Operands[last]
	}
}

// hiddenNames returns the content below /tmp that r's tool puts in the workspace under names that no word has: those of
// a directory's or an archive's files. The run may have given them any name. Patterns are decided when the program
// starts.
func (r *reading) hiddenNames(cwds []string, workspace Workspace) []proposal.Word {
	sources, directory := r.copied()
	if archive, into, ok := r.findUnpacked(); ok {
		sources, directory = []proposal.Word{archive}, into
	}
	return slices.DeleteFunc(slices.Clone(sources), func(source proposal.Word) bool {
		return !r.hasNames(source, directory) || !slices.ContainsFunc(cwds, func(cwd string) bool {
			dir := []string{cwd}
			return directory.Static && ResolvePlace(source.Value, source.Static, dir, workspace) == "tmp" &&
				ResolvePlace(directory.Value, true, dir, workspace) == "workspace"
		})
	})
}

// hasNames reports whether source, which r's tool puts in directory, may contain files.
func (r *reading) hasNames(source, directory proposal.Word) bool {
	switch r.Tool {
	case "cp":
		return r.hasOption("--recursive") || r.hasOption("--archive")
	case "mv", "ln": // a file has an extension, or gets one
		return source.Static && path.Ext(source.Value) == "" && !hasExtension(directory)
	}
	return r.Tool == "tar" || r.Tool == "unzip"
}

// findUnpacked returns the archive that r unpacks, and where.
func (r *reading) findUnpacked() (archive, into proposal.Word, ok bool) {
	into = proposal.Word{Value: ".", Static: true}
	old := oldExtract.MatchString(r.firstOperand())
	for _, o := range r.Options {
		switch o.Name {
		case "--directory", "-d":
			into = o.Value
		case "--file":
			archive = o.Value
		case "--to-stdout", "-l", "-p", "-t", "-v", "-Z", "-z", "-c":
			return archive, into, false
		}
	}
	switch {
	case r.Tool == "unzip" && len(r.Operands) > 0:
		return r.Operands[0], into, true
	case r.Tool == "tar" && old && len(r.Operands) > 1:
		return r.Operands[1], into, true
	}
	return archive, into, r.Tool == "tar" && (old || r.hasOption("--get"))
}

// oldExtract matches the letters with which tar unpacks into files.
var oldExtract = pattern.New(`^[a-zA-NP-Z]*x[a-zA-NP-Z]*$`)

func (r *reading) firstOperand() string {
	if len(r.Operands) == 0 {
		return ""
	}
	return r.Operands[0].Value
}

func hasExtension(w proposal.Word) bool { return path.Ext(strings.TrimLeft(w.Value, "./")) != "" }

// madeFiles are files that r's tool writes and that no word names: DIRECTORY/NAME of cp NAME DIRECTORY, FILE of
// gunzip FILE.gz, and FILESUFFIX of sed -iSUFFIX FILE.
func (r *reading) madeFiles(cwds []string, workspace Workspace) []proposal.Word {
	operands, suffix := r.Operands, proposal.Word{Static: true}
	for _, o := range r.Options {
		switch o.Name {
		case "--suffix", "--in-place":
			suffix = o.Value
		case "--no-target-directory":
			return nil
		}
	}
	var made []proposal.Word
	switch r.Tool {
	case "cp", "mv", "ln", "install":
		sources, directory := r.copied()
		if suffix.Value != "" {
			made = append(made, joinWords(directory, suffix.Value))
		}
		isFile := len(sources) == 1 && hasExtension(directory)
		for _, w := range sources {
			// x.bak may be a directory, but the repository has its own control files.
			if w.Static && !w.Glob && !(isFile && isOwnControlFile(w, cwds, workspace)) {
				name := "/" + path.Base(w.Value)
				made = append(made, joinWords(directory, name+suffix.Value), joinWords(directory, name))
			}
		}
	case "sed", "gsed":
		for _, w := range operands {
			if suffix.Value != "" {
				made = append(made, joinWords(w, suffix.Value))
			}
		}
	case "jupyter", "nbconvert": // nbconvert appends the extension of its format
		for _, o := range r.Options {
			if o.Name == "--output" {
				operands = append(operands, o.Value)
			}
		}
		for _, w := range operands {
			w.Value = strings.TrimSuffix(w.Value, ".ipynb")
			made = append(made, joinWords(w, ".py"), joinWords(w, ".md"), joinWords(w, ".json"))
		}
	case "gunzip", "bunzip2", "unxz", "gzip", "bzip2", "xz", "zstd":
		for _, w := range operands {
			made = append(made, proposal.Word{Value: strings.TrimSuffix(w.Value, path.Ext(w.Value)), Static: w.Static})
		}
	}
	return slices.DeleteFunc(made, func(w proposal.Word) bool { return !w.Static })
}

func isOwnControlFile(w proposal.Word, cwds []string, workspace Workspace) bool {
	return !slices.ContainsFunc(cwds, func(cwd string) bool {
		rel, inside := relativePath(joinPath(cwd, w.Value), workspace.Path)
		return !inside || !workspace.isControlFile(rel)
	})
}

func joinWords(w proposal.Word, end string) proposal.Word {
	w.Value += end
	return w
}

var letters = pattern.New(`^-[A-Za-z]+`)

// pathsIn are the parts of word that may be paths: the word, what is between separators, and what follows
// options of one letter.
func pathsIn(word string) []string {
	split := func(text string) []string {
		return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(`=:,;@"' `, c) })
	}
	paths := append([]string{word}, split(word)...)
	for i := 2; i <= len(letters.FindString(word)) && i < len(word); i++ {
		paths = append(paths, split(word[i:])...)
	}
	return paths
}

// patched matches the files that a patch creates or changes.
var patched = pattern.New(`(?m)^(?:\+\+\+ |rename to |copy to )(\S+)`)

// PatchEffects are the effects of a patch that c has in a here-document: the files of git's and control files.
func PatchEffects(c proposal.Command, cwds []string, workspace Workspace) []Effect {
	isPatch := c.Program == "patch" || c.Program == "git" && slices.ContainsFunc(c.Args, func(w proposal.Word) bool {
		return w.Value == "apply" || w.Value == "am"
	})
	if !isPatch {
		return nil
	}
	var all []Effect
	for _, r := range c.Redirects {
		if r.Kind != "heredoc" && r.Kind != "herestring" {
			continue
		}
		for _, m := range patched.FindAllStringSubmatch(r.Target.Value, -1) {
			name := strings.TrimPrefix(m[1], "b/")
			if place := ResolvePlace(name, true, cwds, workspace); place == "git" || place == "control" {
				all = append(all, Effect{"write", "", name, true, place})
			}
		}
	}
	return all
}

// writesOperand reports whether the operand at i is written.
func (r *reading) writesOperand(i int) bool {
	return r.changes || r.writes > 0 && i+1 >= r.writes
}

// ValuesOf splits a value as tools split their lists.
func ValuesOf(value string) []string {
	return strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(", \t\n'\"", c) })
}

var (
	pathStart = pattern.New(`(?:^|[=:,;@"'])((?:~|/|\.\./)[^=:,;@"' ]*)|^-[A-Za-z]((?:~|/|\.\./)[^=:,;@"' ]*)`)
	address   = pattern.New(`(^|[=:@])(https?|ftp|ssh|git|oci|data|file)(\+\w+)?:(//|/|text/)`)
	nameEnd   = pattern.New(`[=:/~].*|\.\./.*`)
)

// A Path is a path in a word.
type Path struct {
	Name  string `json:"name"`               // the option whose value it is, as it is written, or ""
	Value string `json:"value"`              // as written
	Place string `json:"place" enum:"place"` // where the value leads if it is a path
}

// ReachedPaths are the paths in args, wherever in a word they begin, except in the text of
// programs.
func (r *reading) ReachedPaths(args []proposal.Word, cwds []string, workspace Workspace) []Path {
	var paths []Path
	for i, w := range args {
		if !strings.ContainsAny(w.Value, "/~") || r.isCode(w) {
			continue
		}
		for _, m := range pathStart.FindAllStringSubmatch(w.Value, -1) {
			value := m[1] + m[2]
			paths = append(paths, Path{r.givenTo(args, i), value, ResolvePlace(value, true, cwds, workspace)})
		}
	}
	return paths
}

// givenTo is the option whose value contains the path in the word at i.
func (r *reading) givenTo(args []proposal.Word, i int) string {
	if strings.HasPrefix(args[i].Value, "-") {
		return nameEnd.ReplaceAllString(args[i].Value, "")
	}
	if i == 0 || strings.Contains(args[i-1].Value, "=") || slices.Contains(r.flags, args[i-1].Value) {
		return ""
	}
	if strings.HasPrefix(args[i-1].Value, "-") {
		return nameEnd.ReplaceAllString(args[i-1].Value, "")
	}
	return ""
}

// isCode reports whether w is the text of a program.
func (r *reading) isCode(w proposal.Word) bool {
	for _, o := range r.Options {
		if (o.effect == markCode || o.effect == markRest) && o.Value.Value == w.Value {
			return true
		}
	}
	return false
}

// URLsIn are the words of args that contain a URL.
func URLsIn(args []proposal.Word) []string {
	var urls []string
	for _, w := range args {
		if strings.Contains(w.Value, ":") && address.MatchString(w.Value) {
			urls = append(urls, w.Value)
		}
	}
	return urls
}
