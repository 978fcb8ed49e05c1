// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The types below are the input document. Every field is always present. The JSON Schema
// that the compiler uses to check rules is generated from them.

// input is the document that rules see. At fumehood.proposal, Command is the zero command.
type input struct {
	Workspace string        `json:"workspace"` // the path of the workspace in the sandbox
	Proposal  proposalInput `json:"proposal"`  // the whole proposal
	Command   commandInput  `json:"command"`   // the command that is decided; at fumehood.proposal it is empty
}

type proposalInput struct {
	ID       string         `json:"id"`                       // as in the plan
	Form     string         `json:"form" enum:"form"`         // how it is written
	Language string         `json:"language" enum:"language"` // of code
	Cwd      facts.Placed   `json:"cwd"`                      // the working directory
	Env      []envInput     `json:"env"`                      // variables that it requests
	Limits   limitsInput    `json:"limits"`                   // as requested; 0 requests the default
	Asks     bool           `json:"asks"`                     // some limit is requested
	Network  []string       `json:"network"`                  // hosts that it requests, as written
	Phase    string         `json:"phase" enum:"phase"`       // of the plan
	Origin   string         `json:"origin" enum:"origin"`     // who wrote it; setup is the maintainer's or detected, service starts a configured server
	Outputs  []facts.Placed `json:"outputs"`                  // files that it asks to keep
	Fresh    bool           `json:"fresh"`                    // it asks for a sandbox of its own
	Commands int            `json:"commands"`                 // the number of commands in its text
	Programs []string       `json:"programs"`                 // the plain names of its commands' programs
	Unknowns []unknownInput `json:"unknowns"`                 // what cannot be known before it runs; each denies it
}

type envInput struct {
	Name  string `json:"name"`               // of the variable
	Value string `json:"value"`              // of the variable
	Place string `json:"place" enum:"place"` // where the value leads if it is a path
}

type limitsInput struct {
	WallMS      int64   `json:"wall_ms"`      // time, in milliseconds
	CPUs        float64 `json:"cpus"`         // processors
	MemoryBytes int64   `json:"memory_bytes"` // memory
	Pids        int64   `json:"pids"`         // processes and threads
	DiskBytes   int64   `json:"disk_bytes"`   // disk
	Files       int64   `json:"files"`        // files
	OutputBytes int64   `json:"output_bytes"` // standard output and error
}

type unknownInput struct {
	Code    string `json:"code"`    // stable, such as parse.dynamic-program
	Message string `json:"message"` // for people
	Hint    string `json:"hint"`    // what to write instead
}

type commandInput struct {
	Index   int      `json:"index"`                  // from 0, in the order of the text
	Program string   `json:"program" form:"program"` // the tool's plain name: /usr/bin/go is go, python3.11 is python3
	Written string   `json:"written"`                // as in the text
	Place   string   `json:"place" enum:"program"`   // where its file is: lookup is in PATH, system in /usr/bin and similar; function is declared by the text
	Argv    []string `json:"argv"`                   // the arguments: argv[0] is the first argument, not the program
	Static  bool     `json:"static"`                 // every word is known
	Tool    string   `json:"tool" form:"program"`    // the tool that reads the operands: pytest for python3 -m pytest, else the program
	Sub     string   `json:"sub"`                    // the subcommand of tools whose options are known: "test" in go test; "" for every other tool
	// in their canonical spelling; includes those of Tool, and of GOFLAGS and similar variables
	Options []optionInput `json:"options"`
	// what the words do besides computing and printing, from options.txt
	Effects []facts.Effect `json:"effects"`
	// the words of a client or a server that options.txt allows on loopback only, as it reads them; else empty
	Loopback []facts.LoopbackWord `json:"loopback"`
	// words with which a client of a granted host would run programs, read settings or listen, from options.txt
	Refused []string `json:"refused"`
	Unknown []string `json:"unknown"` // options that options.txt does not list
	Open    bool     `json:"open"`    // options.txt does not list all options of the tool
	// options.txt, allow-tools or an organization's options: the tool reads files, and prints or writes what it found
	Inspector bool           `json:"inspector"`
	Starts    string         `json:"starts" enum:"starts"`    // what the program may start; listed is in options.txt
	HomeSet   bool           `json:"home_set"`                // the plan or the text sets HOME
	Libraries bool           `json:"libraries"`               // the plan or the text sets LD_LIBRARY_PATH
	Searched  []string       `json:"searched"`                // directories that the plan or the text puts in PATH, as written; $PWD/bin for one that begins with an expansion
	Operands  []wordInput    `json:"operands"`                // without sub
	Paths     []facts.Path   `json:"paths"`                   // in words, at any position: absolute, in the home directory, or upward
	URLs      []string       `json:"urls"`                    // words that contain a URL
	Loose     bool           `json:"loose"`                   // a word known only at run time could be an option
	Script    facts.Script   `json:"script"`                  // the script of sed or awk
	Via       []string       `json:"via"`                     // wrappers from the outermost in: timeout, xargs, find -exec, bash -c
	Inside    []string       `json:"inside"`                  // constructs from the outermost in: pipeline, subshell, function f, for, substitution
	Function  bool           `json:"function"`                // program is a function that the same text declares
	StdinFrom string         `json:"stdin_from" enum:"stdin"` // where its standard input comes from
	Homes     []facts.Placed `json:"homes"`                   // paths that the text writes with ~ or $HOME, which words do not show
	// Credentials are the variables that the text reads and whose names are those of
	// credentials.
	Credentials []string        `json:"credentials"`
	Variables   []string        `json:"variables"`  // whose values are all that is not known of its words; empty if more is not known
	Configured  bool            `json:"configured"` // the configuration's allow-tools, or an organization's options, name the program as one that reads
	Assigns     []assignInput   `json:"assigns"`    // variables that are set before it, and in its own words
	Redirects   []redirectInput `json:"redirects"`  // its redirections
}

// A wordInput is a word with the place that it names if it is a path: workspace,
// git, control, tmp, null, secret, home, outside, url, or dynamic.
type wordInput struct {
	Value  string `json:"value"`              // without quotes
	Static bool   `json:"static"`             // it is known before run time; else value is its beginning
	Glob   bool   `json:"glob"`               // the shell may replace it with file names
	Place  string `json:"place" enum:"place"` // where the value leads if it is a path
	Bare   bool   `json:"bare"`               // only one quoted variable
	Star   bool   `json:"star"`               // a pattern that matches every name
}

// An optionInput is an option as its tool reads it, in any spelling. Values is Value split
// like a list: at commas and blanks, without quotes.
type optionInput struct {
	Name   string   `json:"name"`               // canonical: --tags and -tags of go are -tags
	Value  string   `json:"value"`              // in full, without quotes
	Values []string `json:"values"`             // value split at commas and blanks
	Static bool     `json:"static"`             // it is known before run time; else value is its beginning
	Place  string   `json:"place" enum:"place"` // where the value leads if it is a path
	From   string   `json:"from"`               // the variable that contains it, such as GOFLAGS, or ""
}

type assignInput struct {
	Name     string `json:"name"`               // of the variable
	Value    string `json:"value"`              // without quotes
	Static   bool   `json:"static"`             // it is known before run time; else value is its beginning
	Exported bool   `json:"exported"`           // programs see it
	Place    string `json:"place" enum:"place"` // where the value leads if it is a path
}

type redirectInput struct {
	Op     string `json:"op"`                   // as written: >, >>, <, <<, &> and others; 2> has op > and fd 2
	FD     int    `json:"fd"`                   // the descriptor
	Kind   string `json:"kind" enum:"redirect"` // what it does
	Value  string `json:"value"`                // the file, the descriptor or the text
	Static bool   `json:"static"`               // it is known before run time; else value is its beginning
	Place  string `json:"place" enum:"place"`   // where the value leads if it is a path
}

func (e *Engine) proposalInput(p proposal.Proposal, a proposal.Analysis) proposalInput {
	in := proposalInput{
		ID: p.ID, Form: p.Form(), Language: p.Language, Fresh: p.Fresh,
		Network: append([]string{}, p.Network...), Commands: len(a.Commands),
		Limits: requestedLimits(p), Programs: []string{},
	}
	if in.Phase = proposal.PhaseRun; p.Phase == proposal.PhaseSetup {
		in.Phase = proposal.PhaseSetup
	}
	if in.Origin = "proposer"; p.Origin == proposal.OriginSetup || p.Origin == proposal.OriginService {
		in.Origin = p.Origin
	}
	in.Asks = in.Limits != limitsInput{}
	home := []string{e.workspace.Path}
	cwds := []string{e.workspace.Path, path.Join(e.workspace.Path, p.Cwd)}
	in.Cwd = facts.Placed{Value: p.Cwd, Place: facts.ResolvePlace(p.Cwd, true, home, e.workspace)}
	for name, value := range p.Env {
		in.Env = append(in.Env, envInput{name, value,
			facts.AssignedPlace(proposal.Word{Value: value, Static: true}, cwds, e.workspace)})
	}
	sort.Slice(in.Env, func(i, j int) bool { return in.Env[i].Name < in.Env[j].Name })
	for _, o := range p.Outputs {
		in.Outputs = append(in.Outputs, facts.Placed{Value: o, Place: facts.ResolvePlace(o, true, home, e.workspace)})
	}
	for _, c := range a.Commands {
		in.Programs = append(in.Programs, facts.ProgramOf(c, e.workspace).Name)
	}
	for _, u := range a.Unknowns {
		in.Unknowns = append(in.Unknowns, unknownInput{u.Code, u.Message, u.Hint})
	}
	return in
}

func requestedLimits(p proposal.Proposal) limitsInput {
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

// variablesIn returns the variables whose values are all that is not known of args; none if more is not known.
func variablesIn(args []proposal.Word) []string {
	names := []string{}
	for _, w := range args {
		if !w.Static && w.Variables == "" {
			return []string{}
		}
		names = append(names, strings.Fields(w.Variables)...)
	}
	return names
}

// commandInput describes one command. cwds are the directories in which it may run, env
// the variables that it may have.
func (e *Engine) commandInput(c proposal.Command, cwds []string, env facts.Environment, text string) commandInput {
	prog := facts.ProgramOf(c, e.workspace)
	in := commandInput{
		Index: c.Index, Program: prog.Name, Written: c.Program, Place: prog.Place, Argv: []string{}, Static: true,
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
	in.Variables = variablesIn(args)
	if hasAppendedWords(c) {
		in.Variables = []string{}
	}
	put := func(w proposal.Word, cwds []string) wordInput {
		return wordInput{w.Value, w.Static, w.Glob, facts.ResolvePlace(w.Value, w.Static, cwds, e.workspace),
			strings.HasPrefix(w.Head, "$") && w.Head[1] != '(' && w.Tail == "" && !w.Split, w.Glob && w.Star}
	}
	read := e.grammars.Read(prog, args)
	read.AddVariableOptions(e.grammars, env)
	in.Tool, in.Sub, in.Unknown, in.Loose = read.Tool, read.Sub, read.Unknown, read.Loose || hasAppendedWords(c)
	in.Open, in.HomeSet, in.Libraries, in.Searched = read.Unlisted, env.SetsHome(), env.SetsLibraries(),
		env.SearchedPathDirs()
	in.Inspector = e.grammars.IsInspector(read.Tool)
	in.Configured = (prog.Place == "lookup" || prog.Place == "system") && slices.Contains(e.tools, prog.Name)
	in.Starts = e.grammars.ChildKind(prog, args)
	for _, o := range read.Options {
		in.Options = append(in.Options,
			optionInput{o.Name, o.Value.Value, facts.ValuesOf(o.Value.Value), o.Value.Static,
				facts.ResolvePlace(o.Value.Value, o.Value.Static, cwds, e.workspace), o.From})
	}
	for i, w := range read.Operands {
		in.Operands = append(in.Operands, put(w, read.SourceCwds(i, cwds)))
	}
	in.Effects = append(read.Effects(cwds, e.workspace), facts.PatchEffects(c, cwds, e.workspace)...)
	in.Refused = facts.RefusedOptions(prog.Name, in.Argv)
	in.Loopback = facts.ReadLoopback(prog.Name, in.Argv)
	in.Paths, in.URLs = read.ReachedPaths(args, cwds, e.workspace), facts.URLsIn(args)
	in.Script = facts.ScriptOf(prog.Name, read, hasAppendedWords(c))
	in.Homes = facts.HomesIn(text, c.Span, e.workspace.Added)
	for _, as := range c.Assigns {
		in.Assigns = append(in.Assigns,
			assignInput{as.Name, as.Value.Value, as.Value.Static, as.Exported,
				facts.AssignedPlace(as.Value, cwds, e.workspace)})
	}
	in.Credentials = facts.CredentialsIn(text, c.Span)
	for _, r := range c.Redirects {
		w := put(r.Target, cwds)
		if r.Kind == "write" || r.Kind == "readwrite" {
			w.Place = facts.WrittenPlace(w.Value, w.Static, cwds, e.workspace)
		}
		in.Redirects = append(in.Redirects, redirectInput{r.Op, r.FD, r.Kind, w.Value, w.Static, w.Place})
	}
	return in
}

// hasAppendedWords reports whether a wrapper adds words to c that the text does not show.
func hasAppendedWords(c proposal.Command) bool {
	for _, v := range c.Via {
		if v == "xargs" {
			return true
		}
	}
	return false
}
