// SPDX-License-Identifier: Apache-2.0

// Package lineage enforces that a decided text does what was decided: before its shell
// starts a program, the program is compared, argument by argument, with what the
// analysis of the text predicted, and decided again if the two differ.
//
// # Which processes are a text's
//
// gVisor's kernel numbers the processes of a command by lineage (package sentry). A
// process is the text's or a program's:
//
//   - The shell that runs the text is the text's, and so is each process that it
//     forks until that process execs.
//   - What one of the text's processes starts is the text's too if the analysis
//     followed it: an inner shell (sh -c, bash -c) and launchers that start the
//     command in their arguments (env, timeout, nice, xargs, find -exec …).
//   - A program that is there to start others, and everything that it starts, is free: make,
//     npm, a test, a script of the repository (./x.sh, bash x.sh), python3 -c.
//   - Every other program that a text's process starts is a tool, and so is everything that it
//     starts: tar, gcc, sqlite3. policies/options.txt lists what each tool starts. git is a
//     tool even where the analysis followed an option of it (git bisect run), because it
//     starts many others.
//
// A free program's processes are decided by fumehood.exec alone. That is safe because the
// program was decided with its whole argv before it started, and because running it
// means running the repository's code, which is what the sandbox is for. A tool's processes
// are decided by fumehood.exec, too, which then knows the tool, the programs between it and
// the start, and whether its list has the program: whatever options, files and variables
// make a tool start another program, it does not start. The repository's own programs that a tool
// starts are free, where the command was granted built. The kernel never guesses: a process
// whose creation it did not see has the text's lineage, the stricter one.
//
// # What is compared
//
// A program is "predicted" if a Command of the analysis has the same words, all of them
// static; it was found through the sandbox's own PATH, or is named by a path that is
// not another tool's file; and its environment differs from the command's initial one
// only in variables that the text visibly assigns. Then the decision about the text
// applies.
//
// In every other case fumehood.command decides the real argv and the variables that
// differ, as if they had been proposed on their own (of PATH only the directories that the
// sandbox's own PATH lacks): words known only at run time,
// programs that the text never names, programs under another name. An inner shell or
// launcher that is allowed this way is analyzed as a separate text. What is not allowed
// fails with EACCES. Arguments are bytes: those that are not UTF-8 are escaped for policy, one
// character each (points.EscapeBytes), but refused beside code, whose reading may differ. A person's approval of
// the text covers the rules that asked for it, and no others.
//
// # What it does not protect against
//
// Builtins and redirections start no program, so this package does not see them:
// package parse refuses those whose effect it cannot know. A decided program cannot
// control the text's shell: it cannot debug its parent, because the sandbox's user has
// no capabilities. But a process of the same user may write to files that the text's
// shell reads later; what that shell then starts is decided here.
package lineage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Rules that refuse a program without asking policy.
const (
	RuleTooLong    = "start.argv"        // more arguments than can be decided
	RuleTooLarge   = "start.environment" // more variables than can be decided
	RuleUnreadable = "start.unknown"     // the analysis cannot read the argv
	RuleTooMany    = "start.many"        // more inner texts than are kept
	RuleNoText     = "start.no-text"     // a process of an unknown text
	RuleTooDeep    = "start.deep"        // more programs start each other below a tool than are followed
)

// maxTextBytes bounds the memory for the inner texts of one command, maxKept the number of
// answers kept for it, maxChain the programs of a tool's chain, and maxTools the chains.
const (
	maxTextBytes = 64 << 20
	maxKept      = 4096
	maxChain     = 32
	maxTools     = 4096
)

// A ProgramDecider decides the programs of one run. All fields are required.
type ProgramDecider struct {
	// Exec is policy's fumehood.exec. It is called for every program.
	Exec func(context.Context, proposal.Exec) (proposal.ExecDecision, error)
	// Analyze is the analysis that was used for the plan's proposals.
	Analyze func(proposal.Proposal) proposal.Analysis
	// Start is policy's fumehood.command. It is called with the argv of a program that
	// is about to start.
	Start func(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, error)
	// DecideProgram is policy's fumehood.command by the rules that an organization added, except
	// for those that are about texts only. It is called with the argv of a program of the root file
	// system that a free program or a tool starts under another name, or without an execve. If
	// decided is false, there are no such rules.
	DecideProgram func(context.Context, proposal.Proposal, proposal.Analysis) (d proposal.Decision, decided bool,
		err error)
	// Confine returns the plain name of the program of x, which is decided under these names, and
	// the tool whose list says what it may start, or "" if it starts freely.
	Confine func(x proposal.Exec, names []string) (name, under string)
	// Path are the directories in which the sandbox looks for programs. The analysis of a text
	// does not know them: they depend on the host, its version managers and the image.
	Path []string
	// Workspace is where the sandbox has it, and what policy says about files there; without a path it is /workspace.
	Workspace facts.Workspace

	mu    sync.Mutex
	texts map[string]*runningCommand // by the proposal's id
}

// A runningCommand is a proposal whose command is running.
type runningCommand struct {
	proposal proposal.Proposal
	asked    map[string]bool // rules that a person approved
	texts    map[uint32]*decidedText
	bytes    int // of texts, approximately
	last     uint32
	tools    map[uint32]tool
	numbers  map[string]uint32                           // of tools, by their chain
	kept     map[[sha256.Size]byte]proposal.ExecDecision // by argv and what else it depends on
	files    map[string]proposal.ExecDecision            // by file
}

// A tool is what is known of a process that may start only what options.txt lists.
type tool struct {
	chain []string // the programs from the text's command on
	under string   // the one whose list applies, with its subcommand
}

// A decidedText is what one shell or launcher was allowed to do.
type decidedText struct {
	workspace facts.Workspace
	commands  []proposal.Command
	dirs      [][]string                 // in which each command was judged
	assigned  map[string][]proposal.Word // variables that it assigns, with their values
}

// Begin makes r the record that later programs of its command belong to; it must be called
// before the command starts. End forgets it. It reports whether the command's first program,
// if it is not a shell or a launcher, is free.
func (g *ProgramDecider) Begin(r proposal.Record) bool {
	c := &runningCommand{proposal: r.Proposal, asked: map[string]bool{}, texts: map[uint32]*decidedText{}, last: First,
		tools: map[uint32]tool{}, numbers: map[string]uint32{},
		kept: map[[sha256.Size]byte]proposal.ExecDecision{}, files: map[string]proposal.ExecDecision{}}
	c.texts[First] = g.newText(r.Analysis, r.Proposal.Cwd)
	if r.Approval != nil {
		for _, reason := range r.Decision.Reasons {
			c.asked[reason.Rule] = c.asked[reason.Rule] || reason.Effect == proposal.Ask
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.texts == nil {
		g.texts = map[string]*runningCommand{}
	}
	g.texts[r.Proposal.ID] = c
	return g.beginTool(c, r)
}

// beginTool gives the program of an argv the lineage LineageTool, unless it is free.
func (g *ProgramDecider) beginTool(c *runningCommand, r proposal.Record) (free bool) {
	if r.Proposal.RunsShell() || len(r.Analysis.Commands) == 0 {
		return false
	}
	x := proposal.Exec{Path: r.Analysis.Commands[0].Program, Layer: proposal.LayerRootfs,
		Whole: r.Analysis.Commands[0].Argv()}
	if r.Decision.Grant != nil {
		x.Grants = r.Decision.Grant.Exec
	}
	name, under := g.Confine(x, nil)
	if under != "" {
		c.tools[Tool] = tool{[]string{name}, under}
	}
	return under == ""
}

// End forgets the command of the proposal id, which has ended: its texts' processes are
// refused from then on.
func (g *ProgramDecider) End(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.texts, id)
}

// newText returns a text that starts in cwd.
func (g *ProgramDecider) newText(a proposal.Analysis, cwd string) *decidedText {
	t := &decidedText{workspace: g.Workspace, commands: a.Commands,
		assigned: map[string][]proposal.Word{}}
	t.workspace.Path = cmp.Or(t.workspace.Path, "/workspace")
	dirs := facts.TrackCwds(cwd, t.workspace, a.Commands)
	for _, c := range a.Commands {
		t.dirs = append(t.dirs, dirs.EnterCommand(c))
		dirs.RecordCommand(c)
		for _, as := range c.Assigns {
			t.assigned[as.Name] = append(t.assigned[as.Name], as.Value)
		}
	}
	return t
}

// DecideExec decides one exec: by fumehood.exec, and for a text's process also by the text. A
// file that is loaded as code is decided by fumehood.exec alone.
// An error means that policy could not answer; then the program must not start.
func (g *ProgramDecider) DecideExec(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	switch {
	case x.Loaded && x.ELF.IsProgram() && (x.Layer == proposal.LayerRootfs || len(x.Same) > 0):
		return g.judgeMapped(ctx, x)
	case x.Loaded: // the process stays what it is
		return g.Exec(ctx, x)
	case x.Lineage >= Tool:
		return g.judgeChild(ctx, x)
	case x.Lineage == Program:
		d, err := g.Exec(ctx, x)
		if err == nil {
			d, err = g.judgeTarget(ctx, x, d)
		}
		if d.Lineage = Program; x.First && d.Effect == proposal.Allow {
			d.Start = StartPredicted
		}
		return d, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	d, err := g.decideFile(ctx, x)
	// its interpreter, which decideTextProcess does not see
	if c := g.texts[x.Command]; err == nil && c != nil && x.Script != "" {
		d, err = g.judgeTargetOf(ctx, c, x, d)
	}
	if d.Cacheable = false; err != nil || d.Effect != proposal.Allow {
		return d, err
	}
	return g.decideTextProcess(ctx, x, d)
}

// judgeChild decides what a tool's process starts.
func (g *ProgramDecider) judgeChild(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.texts[x.Command]
	if c == nil {
		return unknownText(), nil
	}
	parent, ok := c.tools[x.Lineage]
	if !ok {
		return unknownText(), nil
	}
	x.Chain, x.Under = parent.chain, parent.under
	d, err := g.Exec(ctx, asStart(x))
	if err == nil {
		d, err = g.judgeTargetOf(ctx, c, x, d)
	}
	if d.Cacheable = false; err == nil && d.Effect == proposal.Allow && !x.Loaded {
		d = g.assignTool(c, x, d, nil)
	}
	d.Chain, d.Under = parent.chain, parent.under
	return d, err
}

// judgeMapped decides a program that a process maps as code: that starts it, with words that are not
// known.
func (g *ProgramDecider) judgeMapped(ctx context.Context, x proposal.Exec) (d proposal.ExecDecision, err error) {
	x.Argv = []string{""}
	if x.Lineage >= Tool {
		return g.judgeChild(ctx, x)
	}
	if d, err = g.Exec(ctx, asStart(x)); err == nil {
		d, err = g.judgeTarget(ctx, x, d)
	}
	d.Cacheable = false
	return d, err
}

// asStart returns x as if its program was started by an execve.
func asStart(x proposal.Exec) proposal.Exec {
	x.Loaded = false
	return x
}

// judgeTarget decides a program of the root file system that starts under another name, as a link or
// a copy, also by the rules that an organization wrote for the name that it has there. d is
// fumehood.exec's answer.
func (g *ProgramDecider) judgeTarget(
	ctx context.Context, x proposal.Exec, d proposal.ExecDecision,
) (proposal.ExecDecision, error) {
	if d.Effect != proposal.Allow || len(otherNames(x)) == 0 {
		return d, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.texts[x.Command]
	if c == nil {
		return unknownText(), nil
	}
	return g.judgeTargetOf(ctx, c, x, d)
}

func (g *ProgramDecider) judgeTargetOf(
	ctx context.Context, c *runningCommand, x proposal.Exec, d proposal.ExecDecision,
) (proposal.ExecDecision, error) {
	if d.Effect != proposal.Allow {
		return d, nil
	}
	names := otherNames(x)
	if len(names) > 0 && !x.Loaded { // the selected tool of a program that is many
		if name, _ := g.Confine(asStart(x), nil); name != path.Base(names[0]) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		x.Whole = x.Argv
		p, a := g.separateProposal(c.proposal, &decidedText{}, name, x)
		if len(a.Unknowns) > 0 { // then only the program is known
			x.Whole = nil
			p, a = g.separateProposal(c.proposal, &decidedText{}, name, x)
		}
		answer, decided, err := g.DecideProgram(ctx, p, a)
		if err != nil || !decided {
			return d, err
		}
		d.Cacheable = false
		if against := c.refusalReason(answer); against != nil {
			return refuseExec(d, against.Rule, "it is "+name+": "+against.Message, against.Suggestion), nil
		}
		d = recordObserved(d, answer)
	}
	return d, nil
}

func unknownText() proposal.ExecDecision {
	return refuseExec(proposal.ExecDecision{}, RuleNoText, "no text is running that could start a program",
		"this is a defect: report it")
}

// assignTool returns d with the lineage of a program: that of a tool, or LineageProgram if it
// is free. names are those under which the program is decided.
func (g *ProgramDecider) assignTool(
	c *runningCommand, x proposal.Exec, d proposal.ExecDecision, names []string,
) proposal.ExecDecision {
	name, under := g.Confine(x, names)
	if added := x.Layer != proposal.LayerRootfs && len(x.Same) == 0; x.Under != "" && !added {
		under = x.Under // it is on the list, and so must be what it starts
	}
	if under == "" {
		d.Lineage = Program
		return d
	}
	chain := append(x.Chain[:len(x.Chain):len(x.Chain)], name)
	key := under + "\x00" + strings.Join(chain, "\x00")
	number, ok := c.numbers[key]
	switch {
	case ok:
	case len(chain) > maxChain || len(c.numbers) >= maxTools:
		return refuseExec(d, RuleTooDeep,
			fmt.Sprintf("more programs start each other below %s than can be followed", chain[0]),
			"start fewer of them")
	default:
		number = Tool + 1 + uint32(len(c.numbers))
		c.numbers[key], c.tools[number] = number, tool{chain, under}
	}
	d.Lineage = number
	return d
}

// decideFile returns fumehood.exec's answer about x. The kernel keeps no answers for a text's
// process, so reusable ones are kept here.
func (g *ProgramDecider) decideFile(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
	text := g.texts[x.Command]
	if text == nil || len(x.Env) > 0 {
		return g.Exec(ctx, x)
	}
	key := points.KeyOf(x).String()
	if d, ok := text.files[key]; ok {
		return d, nil
	}
	d, err := g.Exec(ctx, x)
	if d.Lineage = Program; err == nil && d.Cacheable && len(text.files) < maxKept {
		text.files[key] = d
	}
	return d, err
}

// decideTextProcess decides a text's process; d is fumehood.exec's answer, an allow.
func (g *ProgramDecider) decideTextProcess(
	ctx context.Context, x proposal.Exec, d proposal.ExecDecision,
) (proposal.ExecDecision, error) {
	c := g.texts[x.Command]
	if c == nil || c.texts[x.Lineage] == nil {
		return unknownText(), nil
	}
	t := c.texts[x.Lineage]
	if x.Renamed {
		x.Whole = t.originalArgv(x, g)
	}
	if x.First && x.Lineage == First { // the sandbox's own start
		d.Start = StartPredicted
		if c.startsText() {
			d.Lineage = First
			return d, nil
		}
		return g.assignTool(c, x, d, g.decidedNames(x)), nil
	}
	if at := t.predictedIndex(x); at >= 0 && g.isPlainFile(x) && !x.EnvCut && t.assignsAll(x.Changed) &&
		!t.leadsElsewhere(at, x) {
		if d.Start = StartPredicted; x.Lineage != First {
			d.Start = StartDecided // with the launcher whose arguments it was in
		}
		if t.commands[at].StartsText() {
			d.Lineage = x.Lineage
			return d, nil
		}
		return g.assignTool(c, x, d, g.decidedNames(x)), nil
	}
	return g.decideAgain(ctx, c, t, x, d)
}

// startsText reports whether the command's first process is the text's: a shell, or a launcher.
func (c *runningCommand) startsText() bool {
	commands := c.texts[First].commands
	return c.proposal.RunsShell() || len(commands) > 0 && commands[0].StartsText()
}

// decideAgain decides the real argv of x.
func (g *ProgramDecider) decideAgain(
	ctx context.Context, c *runningCommand, t *decidedText, x proposal.Exec, d proposal.ExecDecision,
) (proposal.ExecDecision, error) {
	switch {
	case x.Partial:
		return refuseExec(d, RuleTooLong, "has more arguments than can be decided when it starts",
			"give it fewer at a time, for example with xargs -n 100"), nil
	case x.EnvCut:
		return refuseExec(d, RuleTooLarge, "has a larger environment than can be judged when it starts",
			"export fewer or shorter variables"), nil
	}
	key := keyOf(x)
	if known, ok := c.kept[key]; ok {
		return known, nil
	}
	answer, err := g.askUnderNames(ctx, c, t, x, d)
	if err == nil && len(c.kept) < maxKept {
		c.kept[key] = answer
	}
	return answer, err
}

// askUnderNames asks policy about x under each of its file's names, until one is not allowed.
func (g *ProgramDecider) askUnderNames(
	ctx context.Context, c *runningCommand, t *decidedText, x proposal.Exec, d proposal.ExecDecision,
) (proposal.ExecDecision, error) {
	inner := Program
	for i, name := range g.decidedNames(x) {
		p, a := g.separateProposal(c.proposal, t, name, x)
		if len(a.Unknowns) > 0 {
			return t.refuseInText(x, d, RuleUnreadable, a.Unknowns[0].Message, a.Unknowns[0].Hint), nil
		}
		if hasOtherBytes(x.Whole) && (len(a.Snippets) > 0 || a.Commands[0].StartsText()) {
			return t.refuseInText(x, d, RuleUnreadable,
				"it has code, or starts a program, and an argument with bytes that are not UTF-8",
				"start the program itself, with such bytes only in names of files"), nil
		}
		answer, err := g.Start(ctx, p, a)
		if err != nil {
			return proposal.ExecDecision{}, err
		}
		if against := c.refusalReason(answer); against != nil {
			return t.refusedFor(x, d, *against), nil
		}
		d.Rules = append(d.Rules[:len(d.Rules):len(d.Rules)], answer.Rules...)
		d = recordObserved(d, answer)
		if i == 0 && a.Commands[0].StartsText() {
			if inner = g.addInnerText(c, a, x.Cwd); inner == Program {
				return t.refuseInText(x, d, RuleTooMany, "more shells and launchers were started than can be followed",
					"start fewer of them"), nil
			}
		}
	}
	if d.Start = StartDecided; inner != Program {
		d.Lineage = inner
		return d, nil
	}
	return g.assignTool(c, x, d, g.decidedNames(x)), nil
}

// addInnerText gives an inner text a lineage, or LineageProgram if there are too many texts.
func (g *ProgramDecider) addInnerText(c *runningCommand, a proposal.Analysis, cwd string) uint32 {
	if c.bytes += memorySize(a); c.bytes > maxTextBytes {
		return Program
	}
	c.last++
	c.texts[c.last] = g.newText(a, cwd)
	return c.last
}

// memorySize returns approximately how much memory a takes, in bytes.
func memorySize(a proposal.Analysis) int {
	n := 1024
	for _, c := range a.Commands {
		n += 1024
		for _, w := range c.Args {
			n += 128 + len(w.Value)
		}
	}
	return n
}

// refusalReason returns the reason why answer does not let the program start: a denial, or a
// question that no person has approved. It returns nil if the program may start.
func (c *runningCommand) refusalReason(answer proposal.Decision) *proposal.Reason {
	for i, r := range answer.Reasons {
		if !r.Observed && (r.Effect == proposal.Deny || r.Effect == proposal.Ask && !c.asked[r.Rule]) {
			return &answer.Reasons[i]
		}
	}
	if answer.Effect == proposal.Deny {
		return &proposal.Reason{Rule: RuleUnreadable, Effect: proposal.Deny, Message: "policy does not allow it",
			Command: -1}
	}
	return nil
}

// separateProposal returns x as a separate proposal with the given name and its command's
// grants, and the analysis of it.
func (g *ProgramDecider) separateProposal(
	p proposal.Proposal, t *decidedText, name string, x proposal.Exec,
) (proposal.Proposal, proposal.Analysis) {
	p.Run, p.Code, p.Language, p.Stdin, p.Outputs, p.Needs = "", "", "", "", nil, nil
	p.Argv = []string{name}
	for _, word := range x.Whole[min(1, len(x.Whole)):] {
		p.Argv = append(p.Argv, points.EscapeBytes(word))
	}
	p.Cwd = x.Cwd
	a := g.Analyze(p)
	if len(a.Unknowns) == 0 && len(a.Commands) == 0 {
		a.Unknowns = []proposal.Unknown{{Code: RuleUnreadable, Message: "no command was found",
			Hint: "write the command literally"}}
	}
	if len(a.Commands) > 0 {
		first := &a.Commands[0]
		first.Assigns = append(first.Assigns[:len(first.Assigns):len(first.Assigns)],
			g.changedVariables(t, x.Changed)...)
		first.StdinFrom = t.stdinSource(x)
	}
	return p, a
}

// hasOtherBytes reports whether a word has bytes that EscapeBytes changes.
func hasOtherBytes(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return points.EscapeBytes(w) != w })
}

func refuseExec(d proposal.ExecDecision, rule, message, hint string) proposal.ExecDecision {
	return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{rule}, Start: StartRefused,
		Reason: &proposal.Reason{Rule: rule, Effect: proposal.Deny, Message: message, Suggestion: hint, Command: -1}}
}

// recordObserved records in d the first reason of answer that is only observed and not
// enforced.
func recordObserved(d proposal.ExecDecision, answer proposal.Decision) proposal.ExecDecision {
	for i, r := range answer.Reasons {
		if r.Observed && !d.Observed {
			d.Observed, d.Reason = true, &answer.Reasons[i]
		}
	}
	return d
}
