// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Texts for a person's shell select an environment first: source .venv/bin/activate, nvm use, bash -lc. The sandbox has
// the environment that set-up made, and no profiles. So these are replaced before the text is printed: by the PATH of a
// virtual environment, by true, and by bash -c; a version manager before the tool that it runs is removed. Canonical,
// which is what runs, shows it. What a nested text of any other wrapper has runs as written, and is refused.

var (
	activateFile = pattern.New(`^(?:\./|/workspace/)?((?:[\w-][\w.-]*/)*(?:\.?venv|env))/bin/activate$`)
	profileFile  = pattern.New(`^"?(?:~|\$\{?HOME\}?|\$\{?(?:NVM|SDKMAN)_DIR\}?)(?:/\.nvm/nvm\.sh|/nvm\.sh|/bash_completion|/\.cargo/env` +
		`|/\.asdf/asdf\.sh|/\.rvm/scripts/rvm|(?:/\.sdkman)?/bin/sdkman-init\.sh)"?$` +
		`|^"\$\(conda info --base\)/etc/profile\.d/conda\.sh"$`)
	hookText = pattern.New(`^"?\$\((?:conda shell\.(?:bash|posix) hook|(?:pyenv|rbenv|nodenv|goenv) init -(?: --no-rehash| bash)*` +
		`|(?:mise|rtx) (?:activate|env)(?: (?:-s |--shell[ =])?bash)?|direnv (?:export|hook) bash` +
		`|fnm env(?: --use-on-cd| --shell[ =]bash)*|opam env(?: --switch[ =][\w.-]+)?)\)"?$`)
	// managerHome is where a person's version managers and tools are: the sandbox's home has none.
	managerHome = pattern.New(`^(?:(?:NVM_DIR|PYENV_ROOT|RBENV_ROOT|ASDF_(?:DATA_)?DIR|VOLTA_HOME|SDKMAN_DIR|BUN_INSTALL|DENO_INSTALL|PNPM_HOME)=` +
		`"?(?:~|\$HOME|\$\{HOME\})(?:/[\w.-]+)+"?|GOPATH="?(?:(?:~|\$HOME|\$\{HOME\})/go|\$\(go env GOPATH\))"?|CARGO_HOME="?(?:~|\$HOME|\$\{HOME\})/\.cargo"?)$`)
	managerPath = pattern.New(`^(?:(?:~|\$HOME|\$\{HOME\})/(?:\.local/bin|\.cargo/bin|go/bin|\.npm-global/bin|\.yarn/bin|\.(?:deno|bun|poetry)/bin` +
		`|\.(?:rbenv|pyenv|asdf)/(?:bin|shims)|\.local/share/mise/shims|\.dotnet(?:/tools)?|(?:\.config/)?\.?composer/vendor/bin)` +
		`|\$\{?(?:NVM_DIR|PYENV_ROOT|RBENV_ROOT|ASDF_DIR|VOLTA_HOME|BUN_INSTALL|DENO_INSTALL|PNPM_HOME|CARGO_HOME)\}?(?:/bin|/shims)?` +
		`|\$\(go env GOPATH\)/bin|\$\{?GOPATH\}?/bin)$`)
	versionWord = pattern.New(`^[\w@][\w./@-]*$|^\.$|^--(?:lts|silent|default|install-if-missing)$`)
)

// selecting are the verbs that select an environment, by tool. Others would write a file, or start something.
var selecting = map[string][]string{
	"nvm": {"use"}, "fnm": {"use"}, "rvm": {"use"}, "sdk": {"use", "env"}, "direnv": {"allow"}, "conda": {"activate", "deactivate"}, "mamba": {"activate", "deactivate"},
	"micromamba": {"activate", "deactivate"}, "rbenv": {"shell"}, "pyenv": {"shell", "activate"}, "asdf": {"shell"},
}

// withEnvironments returns text and file, its syntax, with the commands replaced that select an environment, or read
// variables from one of the files that are sourced.
func withEnvironments(text string, file *syntax.File, sourced map[string]string) (string, *syntax.File) {
	r := replacer{files: sourced}
	if !r.replaceEnvironments(file) {
		return text, file
	}
	replaced, err := printText(file)
	if err != nil {
		return text, file
	}
	if second, err := parseText(replaced); err == nil { // so that positions are those of one text
		return replaced, second
	}
	return text, file
}

// A replacer replaces commands in a text, and in the texts of shells in it.
type replacer struct {
	files  map[string]string // Proposal.Sourced
	wanted []string          // the files that the text sources
	moved  bool              // the text has changed the directory
}

// replaceEnvironments replaces the commands of file that select an environment, or source a file, except for those that
// the text declares itself, and reports whether there were any.
func (r *replacer) replaceEnvironments(file *syntax.File) (changed bool) {
	declared := map[string]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		if f, ok := node.(*syntax.FuncDecl); ok && f.Name != nil {
			declared[f.Name.Value] = true
		}
		return true
	})
	exported := sync.OnceValue(func() []region {
		if declared["set"] {
			return nil
		}
		return exportRegions(file)
	})
	syntax.Walk(file, func(node syntax.Node) bool {
		stmt, ok := node.(*syntax.Stmt)
		if !ok {
			return true
		}
		changed = !declared["env"] && r.replaceLists(stmt) || changed
		changed = dropManagers(stmt) || changed
		call, ok := stmt.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) > 0 && declared[call.Args[0].Lit()] {
			return true
		}
		if len(call.Args) == 0 {
			if len(call.Assigns) > 0 && isExported(exported, stmt) {
				stmt.Cmd = &syntax.DeclClause{Variant: &syntax.Lit{Value: "export"}, Args: call.Assigns}
				changed = true
			}
			return true
		}
		text := environmentOf(call)
		_, isSetting := exportSetting(call)
		switch {
		case isSetting && exported() != nil:
			text = "true"
		case text == "":
			text = r.assignmentsIn(call, func() bool { return isExported(exported, stmt) })
		}
		if text != "" {
			if other, err := parseText(text); err == nil {
				stmt.Cmd = other.Stmts[0].Cmd
				changed = true
			}
			return false
		}
		r.moved = r.moved || mayMove(call)
		changed = r.makePlainShell(call) || changed
		changed = removeManager(call) || changed
		return true
	})
	return changed
}

// assignmentsIn returns the command that replaces call, which sources a file of assignments, or "".
func (r *replacer) assignmentsIn(call *syntax.CallExpr, exports func() bool) string {
	name := sourcedFile(call)
	if name == "" || r.moved {
		return ""
	}
	content, ok := r.contentOf(name)
	text, isList := assignmentsOf(content, exports())
	if !ok || !isList {
		return ""
	}
	return text
}

// mayMove reports whether call may change the directory of the shell.
func mayMove(call *syntax.CallExpr) bool {
	return call.Args[0].Lit() == "" || slices.ContainsFunc(call.Args, func(word *syntax.Word) bool {
		return slices.Contains([]string{"cd", "pushd", "popd"}, word.Lit())
	})
}

// environmentOf returns the command that replaces call, or "".
func environmentOf(call *syntax.CallExpr) string {
	if len(call.Assigns) > 0 {
		return ""
	}
	words := make([]string, len(call.Args))
	for i, word := range call.Args {
		words[i] = wordText(word)
	}
	switch name := words[0]; {
	case (name == "source" || name == "." || name == `\.`) && len(words) == 2:
		if found := activateFile.FindStringSubmatch(words[1]); found != nil {
			dir := "$PWD/" + found[1]
			if strings.HasPrefix(words[1], "/") {
				dir = "/workspace/" + found[1]
			}
			return `export PATH="` + dir + `/bin:$PATH"`
		}
		if profileFile.MatchString(words[1]) {
			return "true"
		}
	case name == "source" && len(words) == 3 && words[1] == "activate" && versionWord.MatchString(words[2]),
		name == "eval" && len(words) == 2 && hookText.MatchString(words[1]),
		name == "deactivate" && len(words) == 1,
		name == "corepack" && (len(words) == 2 || len(words) == 3 && (words[2] == "pnpm" || words[2] == "yarn")) &&
			words[1] == "enable",
		len(words) > 1 && len(words) < 5 && slices.Contains(selecting[name], words[1]) && areVersions(words[2:]):
		return "true"
	}
	return ""
}

// dropManagers removes from stmt the directories of a person's version managers and tools: assignments of their homes,
// and what they add to PATH.
func dropManagers(stmt *syntax.Stmt) (changed bool) {
	var assigns []*syntax.Assign
	switch c := stmt.Cmd.(type) {
	case *syntax.DeclClause:
		if c.Variant.Value != "export" {
			return false
		}
		if len(c.Args) == 1 && managerHome.MatchString(assignText(c.Args[0])) {
			other, err := parseText("true")
			if err == nil {
				stmt.Cmd = other.Stmts[0].Cmd
			}
			return err == nil
		}
		assigns = c.Args
	case *syntax.CallExpr:
		assigns = c.Assigns
	}
	for _, a := range assigns {
		if a.Name == nil || a.Name.Value != "PATH" || a.Append || a.Value == nil {
			continue
		}
		body := wordText(a.Value)
		if inner, isQuoted := strings.CutPrefix(body, `"`); isQuoted && strings.Count(body, `"`) == 2 {
			body = strings.TrimSuffix(inner, `"`)
		}
		parts := strings.Split(body, ":")
		kept := slices.DeleteFunc(slices.Clone(parts), managerPath.MatchString)
		value := strings.Join(kept, ":")
		if len(kept) == len(parts) || !slices.Contains(kept, "$PATH") || strings.ContainsAny(value, `"'\`) {
			continue
		}
		if other, err := parseText(`PATH="` + value + `"`); err == nil {
			a.Value, changed = other.Stmts[0].Cmd.(*syntax.CallExpr).Assigns[0].Value, true
		}
	}
	return changed
}

// assignText is a as it is written.
func assignText(a *syntax.Assign) string {
	if a.Name == nil || a.Append || a.Naked || a.Value == nil {
		return ""
	}
	return a.Name.Value + "=" + wordText(a.Value)
}

// managed matches a version manager that runs a tool: the sandbox's PATH has what it selects.
var (
	managed = pattern.New(`^((?:rbenv|pyenv|nodenv|goenv|asdf) exec|(?:mise|rtx) (?:exec|x) --|opam exec --` +
		`|volta run(?: --(?:node|npm|yarn|pnpm) [\w.-]+)*|nvm exec [\w.]+|direnv exec \.|nix develop(?: \.(?:#[\w-]+)?)? (?:-c|--command)|(?:conda|mamba|micromamba) run(?: --no-capture-output)?(?: (?:-n|--name) [\w.-]+)?) $`)
	managedTool = pattern.New(`^[a-zA-Z][\w.+-]*$`)
)

// maxManager is how many words managed matches.
const maxManager = 6

// removeManager removes a version manager before the tool that it runs.
func removeManager(call *syntax.CallExpr) bool {
	before := ""
	for i, word := range call.Args[:min(len(call.Args), maxManager+1)] {
		if name := word.Lit(); managed.MatchString(before) && managedTool.MatchString(name) &&
			!slices.Contains(notManaged, name) {
			call.Args = call.Args[i:]
			return true
		}
		before += word.Lit() + " "
	}
	return false
}

// notManaged are words that would begin another command, and programs that would take the manager's environment for
// their own.
var notManaged = []string{"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
	"select", "in", "function", "time", "coproc", "declare", "typeset", "local", "export", "readonly", "let", "sh", "bash",
	"dash", "env"}

func areVersions(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !versionWord.MatchString(word) })
}

// wordText is word as it is written.
func wordText(word *syntax.Word) string {
	var out strings.Builder
	if err := syntax.NewPrinter().Print(&out, word); err != nil {
		return ""
	}
	return out.String()
}

var (
	shellLetters = pattern.New(`^-[ceuxvnl]+$`)
	beforeShell  = pattern.New(`^(?:(?:env)?(?: [A-Za-z_]\w*=\w*)*|timeout(?: -k \d+[smh]?)? \d+[smh]?|command|exec|nice(?: -n \d+)?) ?$`)
)

// makePlainShell removes the options with which a shell reads profiles, if call runs a text or a file with it:
// bash -lc is bash -c. It also replaces environments in that text.
func (r *replacer) makePlainShell(call *syntax.CallExpr) (changed bool) {
	at := slices.IndexFunc(call.Args, func(word *syntax.Word) bool {
		return slices.Contains([]string{"bash", "sh", "dash"}, word.Lit())
	})
	before := ""
	for _, word := range call.Args[:max(at, 0)] {
		before += word.Lit() + " "
	}
	if at < 0 || !beforeShell.MatchString(before) {
		return false
	}
	args, command := slices.Clone(call.Args[:at+1]), false
	rest := call.Args[at+1:]
	for len(rest) > 0 && (rest[0].Lit() == "--login" || shellLetters.MatchString(rest[0].Lit())) {
		letters := rest[0].Lit()
		plain := strings.ReplaceAll(letters, "l", "")
		if letters == "--login" {
			plain = "-"
		}
		command = command || strings.Contains(plain, "c")
		if plain != "-" {
			args = append(args, litWord(plain))
		}
		changed = changed || plain != letters
		rest = rest[1:]
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0].Lit(), "-") || strings.HasPrefix(rest[0].Lit(), "+") {
		return false
	}
	if command {
		if word := r.replacedText(rest[0]); word != nil {
			rest, changed = append([]*syntax.Word{word}, rest[1:]...), true
		}
	}
	if changed {
		call.Args = append(args, rest...)
	}
	return changed
}

// replacedText returns the text in word with its environments replaced, or nil if there are none.
func (r *replacer) replacedText(word *syntax.Word) *syntax.Word {
	text, split := literalWord(word, readWord)
	if !text.Static || split {
		return nil
	}
	file, err := parseText(text.Value)
	if err != nil || !r.replaceEnvironments(file) {
		return nil
	}
	printed, err := printText(file)
	if err != nil {
		return nil
	}
	quoted, err := syntax.Quote(strings.TrimSuffix(printed, "\n"), syntax.LangBash)
	if err != nil {
		return nil
	}
	command, err := parseText("x " + quoted)
	if err != nil || len(command.Stmts) != 1 {
		return nil
	}
	return command.Stmts[0].Cmd.(*syntax.CallExpr).Args[1]
}

func litWord(text string) *syntax.Word {
	return &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}}
}
