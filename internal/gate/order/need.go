// SPDX-License-Identifier: Apache-2.0

package order

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A SetupNeed is what a proposal may need of set-up.
type SetupNeed struct {
	// Waits means that set-up, if there is one, runs before the proposal. Every Touches waits, and so
	// does what may write a file: what set-up begins with is the repository.
	Waits bool
	// Touches are the parts of the repository that it may use with what set-up makes of them; none
	// for a proposal that needs nothing.
	Touches []setup.Touch
}

// insideSandbox is where a sandbox has the workspace. What an organization adds to places changes no need.
var insideSandbox = facts.Workspace{Path: sandbox.Workspace}

// FindSetupNeed returns what p may need of set-up. The zero value is only for commands that are known
// to read the repository and to use nothing that is installed or built: git log, cat, grep, sed -n,
// node --check. What runs code of the repository, is not listed here, or names a place that set-up
// fills is presumed to use all of the directory that it runs in, and of those below.
func FindSetupNeed(p proposal.Proposal, a proposal.Analysis) (need SetupNeed) {
	if _, refused := p.Refusal(); refused || len(a.Unknowns) > 0 {
		return need // it does not run
	}
	everything := SetupNeed{Waits: true, Touches: []setup.Touch{{Dir: cleanDir(p.Cwd), Below: true}}}
	if p.Form() == "code" && !p.RunsShell() || p.Context != "" || len(a.Commands) == 0 || isMade.MatchString(p.Cwd) {
		return everything
	}
	grammars, err := facts.ShippedGrammars()
	if err != nil || isOfHome.MatchString(a.Canonical) ||
		len(facts.HomesIn(a.Canonical, proposal.Span{}, facts.Places{})) > 0 ||
		slices.ContainsFunc(p.Outputs, isMade.MatchString) {
		return everything
	}
	for name, value := range p.Env {
		if !isHarmless(name) || isMade.MatchString(value) {
			return everything
		}
	}
	dirs := facts.TrackCwds(p.Cwd, insideSandbox, a.Commands)
	commits := findCommits(a.Commands)
	for _, c := range a.Commands {
		cwds := dirs.EnterCommand(c)
		switch judgeCommand(grammars, commits.resolveWords(c)) {
		case uses:
			need.Waits = true
			need.Touches = append(need.Touches, findTouches(grammars, c, cwds)...)
		case writes:
			need.Waits = true
		}
		for _, language := range languagesBuilt(c) {
			need.Waits = true
			need.Touches = append(need.Touches, setup.Touch{Dir: ".", Below: true, Language: language})
		}
		dirs.RecordCommand(c)
	}
	return need
}

// What a command does with the repository: it reads it, it writes files, too, or it may use what
// set-up makes.
type use int

const (
	reads use = iota
	writes
	uses
)

// madeNames are the names, without patterns, that isMade matches.
var madeNames = []string{".cargo", ".conda", ".dart_tool", ".fumehood", ".gradle", ".m2", ".pixi", ".pnp", ".venv",
	".yarn", "node_modules", "site-packages", "venv"}

// mayNameMade reports whether w may name a place that set-up fills. A pattern of fewer than two letters does
// not: ls * shows what there is.
func mayNameMade(w proposal.Word) bool {
	base := w.Value[strings.LastIndexByte(w.Value, '/')+1:]
	return isMade.MatchString(w.Value) || w.Glob && len(base) > 1 &&
		slices.ContainsFunc(madeNames, func(name string) bool { return strings.HasPrefix(name, base) })
}

// cleanDir returns a directory relative to the workspace, "." for one that is elsewhere.
func cleanDir(dir string) string {
	if dir = path.Clean(dir); path.IsAbs(dir) || dir == ".." || strings.HasPrefix(dir, "../") {
		return "."
	}
	return dir
}

var (
	// isMade matches a path of what set-up makes in the workspace, and isVendored a program of Composer's.
	isMade = pattern.New(`(^|[/=:,]|^-[A-Za-z])(` + strings.ReplaceAll(strings.Join(madeNames, "|"), ".", `\.`) +
		`|\.pnp[^/]*|vendor/bundle)([/:,*?]|$)`)
	isVendored = pattern.New(`(^|/)vendor/bin/`)
	// isOfHome matches a text that names a place of HOME, where the caches of package managers are.
	isOfHome = pattern.New(`\$\{?(HOME|CARGO_HOME|VIRTUAL_ENV)\b|\bGO(PATH|MODCACHE|CACHE)\b|/home/|/root/`)
	// steers matches a variable that may be in the environment and makes programs read other settings.
	steers = pattern.New(`^(HOME|PATH|ENV|TMPDIR|(XDG|GIT|LD|BASH)_.*|.*PAGER|.*_(OPTS|OPTIONS|CONFIG.*))$`)
	// harmlessSetting matches a setting of git that steers nothing, and compilerOption an option of a compiler
	// with which -fsyntax-only only reads, and compiledFile a file of C or C++: for other languages it writes.
	harmlessSetting = pattern.New(`(?i)^(color\.[a-z]+|core\.quotepath|safe\.directory)=`)
	compilerOption  = pattern.New(`^-(fsyntax-only|W[A-Za-z0-9=+-]*|[IDU].*|std=.*|pedantic(-errors)?|O[0-3sgz]?|isystem|include)$`)
	compiledFile    = pattern.New(`\.(c|h|cc|cpp|cxx|hh|hpp|hxx)$`)
)

// readers are the programs that only read files of the repository and print.
var readers = splitWords(`: [ arch b2sum base32 base64 basename bat batcat break cat cd cksum cmp colordiff column comm continue cut date df diff
	dirname du echo egrep exit expand expr fd fdfind fgrep file fmt fold gawk git gojq grep head hexdump hostname iconv id
	jq join local logname ls mapfile mawk md5sum nl nproc numfmt od original-awk nawk awk paste pathchk popd pr printenv printf ptx
	pushd pwd read readarray readlink realpath return rev rg sed gsed seq set sha1sum sha224sum sha256sum sha384sum sha512sum shift
	shopt shuf sleep sort stat strings sum tac tail test tokei cloc scc tr tree true false tsort uname unexpand uniq unset uptime wait wc
	wdiff whoami xxd yes yq zcat zgrep`)

// harmless are those that no option makes write a file or start a program.
var harmless = splitWords(`[ basename cat cd cksum cmp column comm cut diff dirname du echo egrep exit expand expr fgrep fmt fold grep head jq join ls md5sum nl od
	paste printf pwd read readlink realpath return rev set sha1sum sha256sum sha512sum stat strings tac tail test tr unexpand wc`)

// writers are the programs that only write files, and gitWrites the subcommands of git: they run
// nothing of the repository.
var (
	writers   = splitWords(`cc c++ chmod clang clang++ cp csplit g++ gcc gunzip gzip install ln mkdir mktemp mv patch rm rmdir split tar tee touch truncate unzip zip`)
	gitWrites = splitWords(`add apply archive checkout clean format-patch restore stash switch worktree`)
)

// starters are the programs that start only what is in the text, where the analysis has followed it.
var starters = splitWords(`bash builtin command dash env exec find ionice nice nohup setsid sh stdbuf time timeout xargs`)

// gitReads are the subcommands of git that write nothing.
var gitReads = splitWords(`annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files diff-index diff-tree
	for-each-ref grep help log ls-files ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show show-branch show-ref status
	var version whatchanged`)

// listOption matches the options with which git config writes nothing.
var listOption = pattern.New(`^-(-get|-get-all|-list)$`)

// gitLists are those that write nothing without an operand.
var gitLists = splitWords(`branch remote tag`)

// versioned are the tools that say which they are, short those that do it with -v, too, checkers those that read
// one file and run nothing of it, each with the option for it. Files of the repository choose which Python and Rust
// there is, and what mvn and ruby load first.
var (
	versioned = splitWords(`bash clang cmake deno gcc git go gofmt java javac make node npm php ruby`)
	short     = splitWords("make node npm php ruby")
	checkers  = map[string]string{"bash": "-n", "sh": "-n", "dash": "-n", "node": "--check", "php": "-l",
		"gcc": "-fsyntax-only", "g++": "-fsyntax-only", "cc": "-fsyntax-only", "c++": "-fsyntax-only",
		"clang": "-fsyntax-only", "clang++": "-fsyntax-only"}
)

func splitWords(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// judgeCommand returns what c does. Commands that it starts are judged on their own.
func judgeCommand(grammars facts.Grammars, c proposal.Command) (found use) {
	for _, a := range c.Assigns {
		if !isPlainPager(a) && (a.Exported && !isHarmless(a.Name) || steers.MatchString(a.Name)) ||
			isMade.MatchString(a.Value.Value) {
			return uses
		}
	}
	for _, r := range c.Redirects {
		if mayNameMade(r.Target) {
			return uses
		}
		if r.Kind != "read" && r.Kind != "dup" && r.Kind != "heredoc" && r.Kind != "herestring" && !isDevice(r.Target) {
			found = writes
		}
	}
	return max(found, judgeProgram(grammars, c))
}

func judgeProgram(grammars facts.Grammars, c proposal.Command) use {
	program := facts.ProgramOf(c, insideSandbox)
	name, args := program.Name, c.Args
	known := false
	switch {
	case program.Place == "none" || program.Place == "function":
		return reads
	case program.Place != "lookup" && program.Place != "system" || len(args) == 0 || !args[0].Static:
		return uses
	case isVersion(name, args[1:]):
		return reads
	case checkers[name] != "" && !c.Launches && checksFile(checkers[name], args[1:]):
		return reads
	case name == "which" || name == "type" || name == "whereis" ||
		name == "command" && len(args) > 1 && strings.EqualFold(args[1].Value, "-v"):
		return judgeLookup(args[1:])
	case name == "find" && c.StartsText() == c.Launches:
		return judgeFind(c)
	case name == "time" && slices.ContainsFunc(leadingOptions(args[1:]),
		func(w proposal.Word) bool { return w.Value != "-p" }):
		return uses // it may write its times to a file
	case name == "cd" && len(args) == 1:
		return uses // HOME
	case name == "xargs" && slices.ContainsFunc(args[1:], isSlotOption):
		return uses // it sets a variable of any name
	case name == "env" && len(args) > 1 && strings.HasPrefix(args[1].Value, "-") && c.StartsText():
		return uses // it may start the program in another directory
	case starters[name]:
		known = c.StartsText() || name == "env" && len(args) == 1
	case name == "export" || name == "declare" || name == "readonly" || name == "typeset":
		known = len(c.Assigns) == len(args)-1 // judged above
	case name == "gofmt":
		return judgeFormatter(grammars, c)
	case readers[name] || writers[name]:
		return judgeWords(grammars, c)
	}
	if known {
		return reads
	}
	return uses
}

// isSlotOption reports whether a word of xargs is --process-slot-var, or may be.
func isSlotOption(w proposal.Word) bool { return strings.HasPrefix(w.Value, "--p") }

// leadingOptions returns the words of args before the first that is not an option.
func leadingOptions(args []proposal.Word) []proposal.Word {
	n := slices.IndexFunc(args, func(w proposal.Word) bool { return !strings.HasPrefix(w.Value, "-") })
	if n < 0 {
		return args
	}
	return args[:n]
}

// judgeFormatter returns what gofmt does. Its grammar has it write its operands, which only -w does.
func judgeFormatter(grammars facts.Grammars, c proposal.Command) use {
	read := grammars.Read(facts.ProgramOf(c, insideSandbox), c.Args[1:])
	if len(read.Unknown) > 0 || read.Loose || slices.ContainsFunc(c.Args, isLooseGlob) {
		return writes
	}
	for _, o := range read.Options {
		if o.Name == "-w" {
			return writes
		}
	}
	for _, e := range read.Effects([]string{sandbox.Workspace}, insideSandbox) {
		if e.Name != "" {
			return writes
		}
	}
	return reads
}

// isLooseGlob reports whether a pattern may match a name that a tool takes for an option or a list of words.
func isLooseGlob(w proposal.Word) bool {
	return !w.Static && (w.Value == "" || strings.IndexByte("-+@", w.Value[0]) >= 0)
}

// judgeWords returns what the words of a reader or a writer make it do.
func judgeWords(grammars facts.Grammars, c proposal.Command) use {
	program := facts.ProgramOf(c, insideSandbox)
	read := grammars.Read(program, c.Args[1:])
	if program.Name == "git" && isSteered(c) {
		return uses
	}
	if len(read.Unknown) > 0 || read.Loose && !harmless[program.Name] || namesMade(c, read.Sub, read.Operands) ||
		!facts.ScriptOf(program.Name, read, false).Plain {
		return uses
	}
	found := reads
	if writers[program.Name] {
		found = writes
	}
	isListing := false
	for _, o := range read.Options {
		isListing = isListing || read.Sub == "config" && listOption.MatchString(o.Name)
	}
	if program.Name == "git" && !gitReads[read.Sub] && !isListing &&
		(read.Sub != "" && !gitLists[read.Sub] || len(read.Operands) > 0) {
		if found = writes; !gitWrites[read.Sub] && !gitLists[read.Sub] {
			return uses
		}
	}
	for _, o := range read.Options {
		switch o.Name {
		case "--in-place", "--set-upstream-to", "--unset-upstream":
			found = writes
		case "-R":
			if program.Name == "tree" {
				found = writes // 00Tree.html in each directory
			}
		case "--file":
			if scripted[program.Name] {
				return uses // a file of the repository says what it does
			}
		}
	}
	for _, e := range read.Effects([]string{sandbox.Workspace}, insideSandbox) {
		switch e.Kind {
		case "run":
			return uses
		case "write":
			found = writes
		}
	}
	return found
}

// isSteered reports whether c is a git with settings of its own: they can name programs. Those of colors and
// of whose repository it may be are harmless.
func isSteered(c proposal.Command) bool {
	for i, w := range c.Args {
		setting, isAttached := strings.CutPrefix(w.Value, "-c")
		if isAttached && setting == "" && i+1 < len(c.Args) {
			w, setting = c.Args[i+1], c.Args[i+1].Value
		}
		isHarmful := !w.Static || strings.Contains(setting, "=") && !harmlessSetting.MatchString(setting)
		if isAttached && isHarmful || strings.HasPrefix(w.Value, "--config-env") {
			return true
		}
	}
	return false
}

// commitCall matches a call of git that prints hashes, or its own words, none of which is an option.
var commitCall = pattern.New(`^\$\(git (-C [\w./][\w./-]* )?(rev-parse( -(-short|-verify|-quiet|q))*|merge-base( -(-all|a))*)( [\w@^][\w@^~{}./:-]*)+\)$`)

// commitWords has expansions of variables: whether one is always a commit.
type commitWords map[string]bool

// findCommits reads the assignments of commands.
func findCommits(commands []proposal.Command) commitWords {
	commits := commitWords{}
	for _, c := range commands {
		for _, a := range c.Assigns {
			before, known := commits["$"+a.Name]
			commits["$"+a.Name] = commitCall.MatchString(a.Value.Head) && a.Value.Tail == "" && (before || !known)
		}
	}
	return commits
}

// resolveWords returns c, if it is a git, with HEAD for each commit that a word begins with.
func (commits commitWords) resolveWords(c proposal.Command) proposal.Command {
	if c.Program != "git" {
		return c
	}
	c.Args = slices.Clone(c.Args)
	for i, w := range c.Args {
		if !w.Static && (commits[w.Head] || commitCall.MatchString(w.Head)) {
			c.Args[i] = proposal.Word{Value: "HEAD" + w.Tail, Static: true}
		}
	}
	return c
}

// isDevice reports whether a word names a file to which anything may be written.
func isDevice(w proposal.Word) bool {
	return w.Static && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, w.Value)
}

// isPlainPager reports whether a switches the pager of git off.
func isPlainPager(a proposal.Assign) bool {
	return (a.Name == "GIT_PAGER" || a.Name == "PAGER") && a.Value.Static &&
		(a.Value.Value == "cat" || a.Value.Value == "")
}

// isHarmless reports whether a variable changes only what programs print.
func isHarmless(name string) bool {
	return strings.HasPrefix(name, "LC_") ||
		slices.Contains([]string{"LANG", "LANGUAGE", "TZ", "NO_COLOR", "COLUMNS", "TERM", "IFS"}, name)
}

// isVersion reports whether a tool only says which it is.
func isVersion(tool string, args []proposal.Word) bool {
	if len(args) == 0 || !args[0].Static || !versioned[tool] {
		return false
	}
	if tool == "go" && (args[0].Value == "version" || args[0].Value == "env") {
		return !slices.ContainsFunc(args[1:], func(w proposal.Word) bool {
			return !w.Static || strings.HasPrefix(w.Value, "-") && w.Value != "-json"
		})
	}
	return len(args) == 1 && (isVersionWord(args[0].Value) || short[tool] && args[0].Value == "-v")
}

func isVersionWord(word string) bool {
	return slices.Contains([]string{"--version", "-V", "-version"}, word)
}

// checksFile reports whether the arguments of a checker have its option first, or anywhere among
// those of a compiler that make it write nothing and load nothing.
func checksFile(option string, args []proposal.Word) bool {
	for i, w := range args {
		if !w.Static && !w.Glob || isLooseGlob(w) || isMade.MatchString(w.Value) {
			return false
		}
		switch {
		case option == "-fsyntax-only":
			if !isCompilerWord(args, i) {
				return false
			}
		case i == 0 && w.Value != option, i > 0 && strings.HasPrefix(w.Value, "-"):
			return false
		}
	}
	return slices.ContainsFunc(args, func(w proposal.Word) bool { return w.Value == option })
}

// isCompilerWord reports whether a compiler with -fsyntax-only only reads what the word at i names.
func isCompilerWord(args []proposal.Word, i int) bool {
	word, before := args[i].Value, ""
	if i > 0 {
		before = args[i-1].Value
	}
	switch {
	case !args[i].Static || strings.HasPrefix(word, "@"):
		return false
	case strings.HasPrefix(word, "-"):
		return word == "-x" || compilerOption.MatchString(word)
	case before == "-x":
		return word == "c" || word == "c++"
	case slices.Contains([]string{"-D", "-I", "-U", "-include", "-isystem"}, before):
		return true
	}
	return compiledFile.MatchString(word)
}

// judgeLookup returns what a command needs that says where programs are: set-up installs some.
func judgeLookup(args []proposal.Word) use {
	for _, w := range args {
		known := readers[w.Value] || writers[w.Value] || starters[w.Value] || versioned[w.Value]
		if !w.Static || !known && !strings.HasPrefix(w.Value, "-") {
			return uses
		}
	}
	return reads
}

// judgeFind returns what find does itself.
func judgeFind(c proposal.Command) use {
	found := reads
	for i, w := range c.Args {
		switch {
		case mayNameMade(w) && !isExcluded(c, i), !w.Static && !w.Glob, isLooseGlob(w):
			return uses
		case w.Value == "-delete" || strings.HasPrefix(w.Value, "-fprint") || w.Value == "-fls":
			found = writes
		}
	}
	return found
}

// scripted are the programs whose script can write files and start programs.
var scripted = splitWords("sed gsed awk gawk mawk nawk original-awk")

// searchers are the programs whose first operand is a pattern or a script, unless an option gives it.
var searchers = splitWords("grep egrep fgrep zgrep rg sed gsed awk gawk mawk nawk jq gojq yq")

// givesPattern reports whether w is an option of a searcher that gives its pattern or script.
func givesPattern(w proposal.Word) bool {
	return slices.ContainsFunc([]string{"-e", "-f", "--regexp", "--file"},
		func(option string) bool { return strings.HasPrefix(w.Value, option) })
}

// namesMade reports whether a word of c, which reads operands, names a place that set-up fills.
func namesMade(c proposal.Command, sub string, operands []proposal.Word) bool {
	name := path.Base(c.Program)
	if name == "git" && sub == "grep" {
		name = "grep"
	}
	if name == "echo" || name == "printf" {
		return false
	}
	searched := ""
	if searchers[name] && len(operands) > 0 && !slices.ContainsFunc(c.Args, givesPattern) {
		searched = operands[0].Value // a pattern or a script
	}
	for i, w := range c.Args[1:] {
		if mayNameMade(w) && w.Value != searched && !isExcluded(c, i+1) {
			return true
		}
	}
	return false
}

// builtBy has the languages whose set-up makes directories of names that a repository may also have of its own:
// the vendor of Go has names of hosts.
var builtBy = []struct {
	language string
	path     *pattern.Pattern
}{
	{setup.Java, pattern.New(`(^|/)(target|build)/`)},
	{"php", pattern.New(`(^|/)vendor/([^./]+(/|$)|autoload\.php$)`)},
	{"elixir", pattern.New(`(^|/)(deps/[a-z0-9_]+/(lib|priv|mix\.exs)|_build)(/|$)`)},
	{"dotnet", pattern.New(`(^|/)obj/(Debug|Release|project\.assets\.json)(/|$)`)},
}

// languagesBuilt returns the languages of builtBy that a word of c names a path of.
func languagesBuilt(c proposal.Command) (languages []string) {
	isDirectory := slices.Contains([]string{"cd", "du", "find", "ls", "tree"}, c.Program)
	for _, built := range builtBy {
		if slices.ContainsFunc(c.Args, func(w proposal.Word) bool {
			return built.path.MatchString(w.Value) || isDirectory && built.path.MatchString(w.Value+"/")
		}) {
			languages = append(languages, built.language)
		}
	}
	return languages
}

// isExcluded reports whether the word at i leaves out what it names.
func isExcluded(c proposal.Command, i int) bool {
	if i == 0 {
		return false // the program
	}
	word, before := c.Args[i].Value, c.Args[i-1].Value
	if slices.ContainsFunc([]string{"--exclude", "!", ":!", ":^", ":(exclude)"},
		func(prefix string) bool { return strings.HasPrefix(word, prefix) }) {
		return true
	}
	if before == "--exclude-dir" || before == "--exclude" || before == "-I" && path.Base(c.Program) == "tree" {
		return true
	}
	pruned := slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return w.Value == "-prune" })
	return path.Base(c.Program) == "find" && i > 2 &&
		(pruned || c.Args[i-2].Value == "!" || c.Args[i-2].Value == "-not")
}
