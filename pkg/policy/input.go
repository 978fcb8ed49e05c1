// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The types below are the input document. Every field is always there. The JSON
// Schema that the compiler checks rules against is made from them.

// input is what a rule sees. At fumehood.proposal, Command is the zero command.
type input struct {
	Workspace string        `json:"workspace"` // where the sandbox has the workspace
	Proposal  proposalInput `json:"proposal"`
	Command   commandInput  `json:"command"`
}

type proposalInput struct {
	ID       string         `json:"id"`
	Form     string         `json:"form"` // run, argv or code
	Language string         `json:"language"`
	Cwd      placed         `json:"cwd"`
	Env      []envInput     `json:"env"`
	Limits   limitsInput    `json:"limits"` // as asked; 0 asks for the default
	Asks     bool           `json:"asks"`   // some limit is asked for
	Network  []string       `json:"network"`
	Phase    string         `json:"phase"` // setup or run
	Outputs  []placed       `json:"outputs"`
	Fresh    bool           `json:"fresh"`
	Commands int            `json:"commands"`
	Programs []string       `json:"programs"`
	Unknowns []unknownInput `json:"unknowns"`
}

type envInput struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type limitsInput struct {
	WallMS      int64   `json:"wall_ms"`
	CPUs        float64 `json:"cpus"`
	MemoryBytes int64   `json:"memory_bytes"`
	Pids        int64   `json:"pids"`
	DiskBytes   int64   `json:"disk_bytes"`
	Files       int64   `json:"files"`
	OutputBytes int64   `json:"output_bytes"`
}

type unknownInput struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

type commandInput struct {
	Index     int           `json:"index"`
	Program   string        `json:"program"`  // the tool's plain name: /usr/bin/go is go, python3.11 is python3
	Written   string        `json:"written"`  // as the text names it
	Place     string        `json:"place"`    // lookup, system, workspace, tmp, outside, function or none
	Argv      []string      `json:"argv"`     // without the program
	Static    bool          `json:"static"`   // every word is known
	Tool      string        `json:"tool"`     // whose words the operands are: pytest of python3 -m pytest, else the program
	Sub       string        `json:"sub"`      // go test: "test"
	Options   []optionInput `json:"options"`  // in their canonical spelling, those of Tool and of what is held in GOFLAGS and the like too
	Effects   []effectInput `json:"effects"`  // what options.txt says that they do beside computing and printing
	Unknown   []string      `json:"unknown"`  // options that options.txt does not list
	Open      bool          `json:"open"`     // options.txt does not list all that the tool has
	Operands  []wordInput   `json:"operands"` // without sub
	Paths     []pathInput   `json:"paths"`    // that words hold, wherever in them: absolute, in the home folder or upward
	URLs      []string      `json:"urls"`     // words that hold an address
	Loose     bool          `json:"loose"`    // a word known only at run time could be an option
	Script    scriptInput   `json:"script"`   // of sed and awk
	Via       []string      `json:"via"`
	Inside    []string      `json:"inside"`
	Function  bool          `json:"function"`
	StdinFrom string        `json:"stdin_from"`
	Homes     []placed      `json:"homes"` // paths that the text spells with ~ or $HOME, which words do not show
	// Credentials are variables with the names of credentials that the text reads.
	Credentials []string        `json:"credentials"`
	Assigns     []assignInput   `json:"assigns"`
	Redirects   []redirectInput `json:"redirects"`
}

// A wordInput is a word with the place it would name if it is a path: workspace,
// git, control, tmp, null, secret, home, outside, url, or dynamic.
type wordInput struct {
	Value  string `json:"value"`
	Static bool   `json:"static"`
	Glob   bool   `json:"glob"`
	Place  string `json:"place"`
	Bare   bool   `json:"bare"` // nothing but one quoted variable
	Star   bool   `json:"star"` // a pattern that matches every name
}

type placed struct {
	Value string `json:"value"`
	Place string `json:"place"`
}

// An optionInput is an option as its tool reads it, however it is spelled. Values is
// Value split as lists are: at commas and blanks, without quotes.
type optionInput struct {
	Name   string   `json:"name"`
	Value  string   `json:"value"`
	Values []string `json:"values"`
	Static bool     `json:"static"`
	Place  string   `json:"place"`
	From   string   `json:"from"` // the variable that holds it, as GOFLAGS does, or ""
}

// An effectInput is one thing that words have their tool do: run something that the text
// does not show, or write a file.
type effectInput struct {
	Kind   string `json:"kind"` // run, write, or code: the value is a program's text
	Name   string `json:"name"` // of the option, or "" for an operand
	Value  string `json:"value"`
	Static bool   `json:"static"`
	Place  string `json:"place"`
}

type pathInput struct {
	Name  string `json:"name"` // the option that it is given to, as it is written, or ""
	Value string `json:"value"`
	Place string `json:"place"`
}

// A scriptInput says whether a sed or awk script only edits text, and if not why. One
// that only run time knows is not plain, and there is no why.
type scriptInput struct {
	Plain bool   `json:"plain"`
	Why   string `json:"why"`
}

type assignInput struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Static   bool   `json:"static"`
	Exported bool   `json:"exported"`
	Place    string `json:"place"`
}

type redirectInput struct {
	Op     string `json:"op"`
	FD     int    `json:"fd"`
	Kind   string `json:"kind"`
	Value  string `json:"value"`
	Static bool   `json:"static"`
	Place  string `json:"place"`
}

func (e *Engine) proposalInput(p proposal.Proposal, a proposal.Analysis) proposalInput {
	in := proposalInput{
		ID: p.ID, Form: p.Form(), Language: p.Language, Fresh: p.Fresh,
		Network: append([]string{}, p.Network...), Commands: len(a.Commands),
		Limits: asked(p), Programs: []string{},
	}
	if in.Phase = proposal.PhaseRun; p.Phase == proposal.PhaseSetup {
		in.Phase = proposal.PhaseSetup
	}
	in.Asks = in.Limits != limitsInput{}
	home := []string{e.workspace}
	in.Cwd = placed{p.Cwd, place(p.Cwd, true, home, e.workspace)}
	for name, value := range p.Env {
		in.Env = append(in.Env, envInput{name, value})
	}
	sort.Slice(in.Env, func(i, j int) bool { return in.Env[i].Name < in.Env[j].Name })
	for _, o := range p.Outputs {
		in.Outputs = append(in.Outputs, placed{o, place(o, true, home, e.workspace)})
	}
	for _, c := range a.Commands {
		in.Programs = append(in.Programs, programOf(c, e.workspace).name)
	}
	for _, u := range a.Unknowns {
		in.Unknowns = append(in.Unknowns, unknownInput{u.Code, u.Message, u.Hint})
	}
	return in
}

func asked(p proposal.Proposal) limitsInput {
	var l proposal.Limits
	if p.Limits != nil {
		l = *p.Limits
	}
	if p.Timeout > 0 && (l.Wall == 0 || p.Timeout < l.Wall) {
		l.Wall = p.Timeout
	}
	return limitsInput{
		WallMS: l.Wall.Std().Milliseconds(), CPUs: l.CPUs, MemoryBytes: int64(l.Memory), Pids: int64(l.Pids),
		DiskBytes: int64(l.Disk), Files: int64(l.Files), OutputBytes: int64(l.Output),
	}
}

// commandInput describes one command; cwds are the folders it may run in, env are
// variables that it may have.
func (e *Engine) commandInput(c proposal.Command, cwds []string, env environment, text string) commandInput {
	prog := programOf(c, e.workspace)
	in := commandInput{
		Index: c.Index, Program: prog.name, Written: c.Program, Place: prog.place, Argv: []string{}, Static: true,
		Via: c.Via, Inside: c.Inside, Function: c.Function, StdinFrom: c.StdinFrom,
	}
	var args []proposal.Word
	if len(c.Args) > 0 && c.Program != "" {
		args = c.Args[1:]
	}
	for _, w := range args {
		in.Argv = append(in.Argv, w.Value)
		in.Static = in.Static && w.Static
	}
	put := func(w proposal.Word) wordInput {
		return wordInput{w.Value, w.Static, w.Glob, place(w.Value, w.Static, cwds, e.workspace), strings.HasPrefix(w.Head, "$") && w.Head[1] != '(' && w.Tail == "" && !w.Split, w.Glob && w.Star}
	}
	read := e.grammars.read(prog, args)
	read.held(e.grammars, env)
	in.Tool, in.Sub, in.Unknown, in.Loose = read.tool, read.sub, read.unknown, read.loose || appended(c)
	in.Open = read.unlisted
	for _, o := range read.options {
		in.Options = append(in.Options, optionInput{o.name, o.value.Value, valuesOf(o.value.Value), o.value.Static, place(o.value.Value, o.value.Static, cwds, e.workspace), o.from})
		in.effect(read, len(in.Options)-1)
	}
	for i, w := range read.operands {
		in.Operands = append(in.Operands, put(w))
		if o := in.Operands[i]; read.writesOperand(i) && o.Value != "-" {
			in.Effects = append(in.Effects, effectInput{"write", "", o.Value, o.Static, o.Place})
		}
	}
	in.Paths, in.URLs = e.reaches(args, read, cwds), urlsIn(args)
	in.Script = scriptOf(prog.name, read, appended(c))
	in.Homes = homesIn(text, c.Span)
	for _, as := range c.Assigns {
		in.Assigns = append(in.Assigns, assignInput{as.Name, as.Value.Value, as.Value.Static, as.Exported, assignedPlace(as.Value, cwds, e.workspace)})
	}
	in.Credentials = credentialsIn(text, c.Span)
	for _, r := range c.Redirects {
		w := put(r.Target)
		in.Redirects = append(in.Redirects, redirectInput{r.Op, r.FD, r.Kind, w.Value, w.Static, w.Place})
	}
	return in
}

// homePath leaves out ~name without a slash, which tools use for not and for an
// ancestor; only root and runner are names that somebody would look for.
var homePath = regexp.MustCompile(`(?:^|[\s:<>("']|\S=)(?:~(?:root|runner)?|~[\w.+-]+/|"?\$\{?HOME(?:[:%#/,^@][^}]*)?\}?"?)((?:/[^\s;|&<>()'"]*)?)(?:[\s;|&<>()'"/.*?\[]|$)`)

// homesIn finds the paths in the home folder that the text at span names. A word
// holds only what precedes the tilde, which is nothing.
func homesIn(text string, span proposal.Span) []placed {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	if !strings.ContainsAny(text, "~$") {
		return nil
	}
	text = unquoted(text)
	var homes []placed
	for _, m := range homePath.FindAllStringSubmatch(text, -1) {
		homes = append(homes, placed{"~" + m[1], placeOf(path.Clean("/home/fumehood"+m[1]), "")})
	}
	return homes
}

// unquoted leaves out what stands in single quotes, where nothing is expanded. A text in
// which quotes may be nested is left as it is.
func unquoted(text string) string {
	if !strings.Contains(text, "'") || strings.Contains(text, "$(") || strings.ContainsAny(text, "`") || strings.Contains(text, "<<") || strings.Contains(text, "$'") {
		return text
	}
	var kept strings.Builder
	double, single := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && !single && i+1 < len(text):
			kept.WriteByte(c)
			i++
			c = text[i]
		case c == '"' && !single:
			double = !double
		case c == '\'' && !double:
			single = !single
		case single:
			continue
		}
		kept.WriteByte(c)
	}
	return kept.String()
}

var credentialName = regexp.MustCompile(`\$\{?[!#]?([A-Z][A-Z0-9_]*)`)

var credentialWord = regexp.MustCompile(`(^|_)(TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|CREDENTIALS?|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|SIGNING_KEY|PAT|AUTH)(_|$)`)

// credentialsIn finds the variables with the names of credentials that the text at
// span expands.
func credentialsIn(text string, span proposal.Span) []string {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	var names []string
	for _, m := range credentialName.FindAllStringSubmatch(text, -1) {
		if credentialWord.MatchString(m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// assignedPlace places a value that looks like a path; any other is a word.
func assignedPlace(w proposal.Word, cwds []string, workspace string) string {
	if !strings.HasPrefix(w.Value, "/") && !strings.HasPrefix(w.Value, "../") {
		return "workspace"
	}
	return place(w.Value, w.Static, cwds, workspace)
}

// appended reports whether a wrapper adds words to c that the text does not show.
func appended(c proposal.Command) bool {
	for _, v := range c.Via {
		if v == "xargs" {
			return true
		}
	}
	return false
}

type program struct{ name, place string }

var versioned = regexp.MustCompile(`^(python|pip|gcc|g\+\+|clang|clang\+\+|ruby|php|node|lua|perl|java|clang-format|clang-tidy|gdb|lldb|lldb-server|perf|bpftrace)[-_]?([0-9]+)(\.[0-9]+)*$`)

var systemDirs = map[string]bool{"/usr/bin": true, "/bin": true, "/usr/local/bin": true, "/usr/local/go/bin": true}

// programOf names the tool that c runs. Another path is another program, so a file
// called ./cat never passes for cat.
func programOf(c proposal.Command, workspace string) program {
	switch name := c.Program; {
	case name == "":
		return program{"", "none"}
	case c.Function:
		return program{name, "function"}
	case !strings.Contains(name, "/"):
		return program{toolName(name), "lookup"}
	case strings.HasPrefix(name, "/"):
		clean := path.Clean(name)
		if systemDirs[path.Dir(clean)] && clean == name {
			return program{toolName(path.Base(clean)), "system"}
		}
		return program{clean, place(name, true, []string{workspace}, workspace)}
	default:
		return program{path.Clean("./" + name), place(name, true, []string{workspace}, workspace)}
	}
}

func toolName(name string) string {
	if name == "python" || name == "pip" {
		return name + "3"
	}
	if m := versioned.FindStringSubmatch(name); m != nil {
		if m[1] == "python" || m[1] == "pip" {
			return m[1] + "3"
		}
		return m[1]
	}
	return name
}
