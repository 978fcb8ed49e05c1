// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/internal/sandbox/interpreter"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// addTools adds the tools. Their hints are true: a command cannot change anything outside
// its sandbox, and reaches other hosts only if Options.Network lets policy grant one.
func (s *Server) addTools() {
	no, yes, open := false, true, len(s.o.Network) > 0
	runs := &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &open}
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "check", Annotations: reads,
		Description: "Show how policy decides commands or code. Nothing runs."}, toolHandler(s, (*client).checkProposals))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "run", Annotations: runs,
		Description: "Run one command in the sandbox, if policy allows it."},
		onSession(s, (*client).runTool))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "run_code", Annotations: runs,
		Description: "Run code in the sandbox, if policy allows it. Variables are kept; Python and JavaScript show the last value and images."}, onSession(s, (*client).runCode))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "process",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
		Description: "List commands in the background, or show the output of one, write to it, or stop it."},
		onSession(s, (*client).handleProcess))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "read_file", Annotations: reads,
		Description: "Read a file of the workspace. Secrets are redacted."},
		onSession(s, withoutRequest((*client).readFile)))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "write_file",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
		Description: "Write a file of the workspace. The host's files do not change."},
		onSession(s, withoutRequest((*client).writeFile)))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "edit_file",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
		Description: "Replace text of a file of the workspace, exactly."},
		onSession(s, withoutRequest((*client).editFile)))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "list_files", Annotations: reads,
		Description: "List files of the workspace that match a pattern."},
		onSession(s, withoutRequest((*client).listFiles)))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "diff", Annotations: reads,
		Description: "List added, changed and removed files, with contents as a patch."},
		onSession(s, withoutRequest((*client).handleDiff)))
	mcp.AddTool(s.mcp, &mcp.Tool{Name: "end_session",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
		Description: "End the sandbox, discard its files and seal the log."},
		toolHandler(s, (*client).endSession))
}

// toolHandler returns a handler that calls f with the client of the call. A call ends with its
// client's connection, too.
func toolHandler[In any](
	s *Server, f func(c *client, ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any,
		error),
) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		if s.drain.HasBegun() {
			return nil, nil, clientError(errDraining)
		}
		c, err := s.ensureClient(req.Session, userOf(req.Extra))
		if err != nil {
			return nil, nil, clientError(err)
		}
		ctx, stop := c.boundToConnection(ctx, req.Extra)
		defer stop()
		if err := strictjson.CheckNames(req.Params.Arguments); err != nil && len(req.Params.Arguments) > 0 {
			return nil, nil, clientError(invalidArguments(err.Error()))
		}
		r, out, err := f(c, ctx, req, in)
		if err != nil {
			return nil, nil, clientError(err)
		}
		return r, out, nil
	}
}

// onSession is toolHandler for what needs the client's session, which it begins. A client that
// sent a progress token is notified while it waits.
func onSession[In any](
	s *Server, f func(c *client, ctx context.Context, req *mcp.CallToolRequest, s *session, in In) (*mcp.CallToolResult,
		any, error),
) mcp.ToolHandlerFor[In, any] {
	return toolHandler(s, func(c *client, ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult,
		any, error) {
		notes := c.startNotifier(ctx, req)
		defer notes.stop()
		session, err := c.ensureSession(req)
		if err != nil {
			return nil, nil, err
		}
		notes.watchSession(session)
		return f(c, ctx, req, session, in)
	})
}

// withoutRequest adapts a function that needs no request.
func withoutRequest[In any](
	f func(*client, context.Context, *session, In) (*mcp.CallToolResult, any, error),
) func(*client, context.Context, *mcp.CallToolRequest, *session, In) (*mcp.CallToolResult, any, error) {
	return func(c *client, ctx context.Context, _ *mcp.CallToolRequest, s *session, in In) (*mcp.CallToolResult, any,
		error) {
		r, out, err := f(c, ctx, s, in)
		if err == nil {
			s.markUsed()
		}
		return r, out, err
	}
}

func (c *client) checkProposals(
	ctx context.Context, _ *mcp.CallToolRequest, in question,
) (*mcp.CallToolResult, any, error) {
	proposals, err := proposalsOf(in)
	if err != nil {
		return nil, nil, err
	}
	g, err := c.ensureGate()
	if err != nil {
		return nil, nil, err
	}
	records, err := g.Check(ctx, proposal.Plan{Proposals: proposals})
	if err != nil {
		return nil, nil, err
	}
	var words strings.Builder
	for _, r := range records[len(records)-len(proposals):] { // after the set-up's
		fmt.Fprintf(&words, "%s: %s\n", r.Decision.Effect, shortenMessage(strings.TrimSpace(r.Analysis.Canonical)))
		for _, reason := range reasonsOf(r) {
			words.WriteString(reason.String())
		}
	}
	return toolResult(words.String())
}

// maxQuestions is how many commands one check decides.
const maxQuestions = 50

// proposalsOf returns the proposals that in is about.
func proposalsOf(in question) (list []proposal.Proposal, err error) {
	if len(in.Commands) > maxQuestions {
		return nil, invalidArguments(fmt.Sprintf("commands: more than %d", maxQuestions))
	}
	all := []question{in}
	for i, text := range in.Commands {
		one := in
		one.Command = text
		if i == 0 {
			all = nil
		}
		all = append(all, one)
	}
	if len(in.Commands) > 0 && (in.Command != "" || len(in.Argv) > 0 || in.Code != "") {
		return nil, invalidArguments("commands: must be alone")
	}
	for i, one := range all {
		p, err := decodeProposal(fmt.Sprintf("q%d", i+1), one)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (c *client) runTool(
	ctx context.Context, req *mcp.CallToolRequest, s *session, in proposeArgs,
) (*mcp.CallToolResult, any, error) {
	p, err := decodeProposal(c.nextID(), in)
	if err != nil {
		return nil, nil, err
	}
	if in.Background {
		return c.startProcess(ctx, s, p, in.Input)
	}
	if in.Input {
		return nil, nil, invalidArguments("input: only in the background")
	}
	return c.runProposal(ctx, req, s, p, "")
}

// defaultContext is the context of snippets that name none.
const defaultContext = "main"

func (c *client) runCode(
	ctx context.Context, req *mcp.CallToolRequest, s *session, in snippet,
) (*mcp.CallToolResult, any, error) {
	p, err := decodeProposal(c.nextID(), in)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case p.Code != "":
		p.Context = cmp.Or(in.Context, defaultContext)
	case in.Context != "":
		return nil, nil, invalidArguments("context: code of " + in.Language + " keeps no variables")
	}
	return c.runProposal(ctx, req, s, p, in.Language)
}

// runProposal runs p, after the set-up, and with the client's approval if policy asks. language is that of the code
// that it runs, or "".
func (c *client) runProposal(
	ctx context.Context, req *mcp.CallToolRequest, s *session, p proposal.Proposal, language string,
) (*mcp.CallToolResult, any, error) {
	if err := s.setup.runBefore(ctx, c.ctx, s, p); err != nil {
		return nil, nil, err
	}
	approval, denied, err := c.takeApproval(ctx, req, s, p)
	if err != nil {
		return nil, nil, err
	}
	if denied != nil {
		return toolResult(runAnswer{ID: p.ID, Effect: "deny", Reasons: []reason{*denied}}.String())
	}
	running := ctx
	if req.Params.GetProgressToken() != nil {
		running = s.withLastLine(ctx)
	}
	used := s.isUsed()
	r, err := s.runBeside(running, p, approval)
	if err = cmp.Or(err, interpreter.MissingError(language, r)); err != nil {
		return nil, nil, err
	}
	if r.Decision.Effect == proposal.Ask && !r.Runnable() {
		if asked, err := c.askApproval(ctx, req, s, r, p); asked != nil || err != nil {
			return asked, nil, err
		}
	}
	return toolResult(s.ranOf(r, used).String(), s.shownImages(r)...)
}

// doWithApproval is Do, or DoApproved if there is an approval.
func doWithApproval(
	ctx context.Context, s gate.Session, p proposal.Proposal, a *proposal.ClientApproval,
) (proposal.Record, error) {
	if a == nil {
		return s.Do(ctx, p)
	}
	return s.DoApproved(ctx, p, *a)
}

func (c *client) endSession(context.Context, *mcp.CallToolRequest, noArgs) (*mcp.CallToolResult, any, error) {
	last, err := c.sealSession()
	if err != nil {
		return nil, nil, err
	}
	if last == nil {
		return toolResult("no session is open")
	}
	t := last.report.Totals
	words := fmt.Sprintf("the session has ended: %d proposed, %d denied, %d need an approval, %d succeeded, %d failed\nlog: %s\nreport: %s",
		t.Proposed, t.Denied, t.Asked, t.Succeeded, t.Failed, last.log, uriReport)
	if last.report.Audit != nil {
		words += "\nkey: " + last.report.Audit.Key
	}
	return toolResult(words)
}

// A notifier sends progress notifications about one call.
type notifier struct {
	found chan *session
	done  chan struct{}
	ended chan struct{}
}

// startNotifier begins to send notifications, if the client asked for them.
func (c *client) startNotifier(ctx context.Context, req *mcp.CallToolRequest) *notifier {
	n := &notifier{found: make(chan *session, 1), done: make(chan struct{}), ended: make(chan struct{})}
	token := req.Params.GetProgressToken()
	if token == nil {
		close(n.ended)
		return n
	}
	go func() {
		defer close(n.ended)
		n.sendProgress(ctx, c.server.o.Every, func(count int, message string) {
			_ = req.Session.NotifyProgress(ctx,
				&mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(count), Message: message})
		})
	}()
	return n
}

func (n *notifier) sendProgress(ctx context.Context, every time.Duration, to func(int, string)) {
	begin, ticks := time.Now(), time.NewTicker(every)
	defer ticks.Stop()
	var s *session
	for count := 1; ; {
		select {
		case s = <-n.found:
		case <-ticks.C:
			to(count, describeActivity(s)+", "+time.Since(begin).Round(time.Second).String())
			count++
		case <-n.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func describeActivity(s *session) string {
	if s == nil {
		return "starting the session"
	}
	if words := s.setup.describeProgress(); words != "" {
		return words
	}
	return s.describeCommand()
}

// watchSession names the session whose state is reported.
func (n *notifier) watchSession(s *session) { n.found <- s }

// stop ends the notifications: none is sent after it has returned.
func (n *notifier) stop() {
	close(n.done)
	<-n.ended
}
