// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/base64"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var codeInMessage = regexp.MustCompile(`type the code ([A-Z2-7]{6})\.`)

// read returns the answer of a person who reads the question.
func read(message string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{codeField: codeInMessage.FindStringSubmatch(message)[1]}}
}

// A caller is a client that answers questions itself, so that a test can change each part
// of a call: the arguments, the state and the answer.
type caller struct {
	*mcp.ClientSession
	server *Server
	world  *world
}

func newCaller(t *testing.T, o Options) *caller {
	t.Helper()
	w := newWorld()
	if o.Approver == "" {
		o.Approver = Elicit
	}
	s := serverOf(w, o)
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.mcp.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	options := &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return &caller{cs, s, w}
}

// ask proposes a command, and returns the state and the message of the question about it.
func (c *caller) ask(t *testing.T, command string) (state, message string) {
	t.Helper()
	r := call(t, c.ClientSession, "run", proposeArgs{Command: command})
	p, is := r.InputRequests[approveKey].(*mcp.ElicitParams)
	if !is {
		t.Fatalf("%s: no question: %s", command, words(r))
	}
	return r.RequestState, p.Message
}

func (c *caller) answer(t *testing.T, command, state string, answer *mcp.ElicitResult) *mcp.CallToolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: proposeArgs{Command: command}, RequestState: state,
		InputResponses: mcp.InputResponseMap{approveKey: answer}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// questionsOf returns the questions of the server's only client.
func (c *caller) questionsOf() *questions {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for _, x := range c.server.clients {
		return x.asked
	}
	return nil
}

// later makes the server's clock go.
func (c *caller) later(d time.Duration) {
	q := c.questionsOf()
	now := q.now
	q.now = func() time.Time { return now().Add(d) }
}

// A question that was read and answered runs the command once, and the answer is recorded
// as the client's.
func TestApproved(t *testing.T) {
	c := newCaller(t, Options{})
	state, message := c.ask(t, "ask me")
	for _, want := range []string{"test.ask: a person decides", "command:\n```\nask me\n```", "MCP client tester 1"} {
		if !strings.Contains(message, want) {
			t.Errorf("the question lacks %q:\n%s", want, message)
		}
	}
	if c.world.has("run ") {
		t.Error("ran before the answer")
	}
	c.later(2 * time.Second)
	got := words(c.answer(t, "ask me", state, read(message)))
	if !strings.Contains(got, "exit code 0") || !strings.Contains(got, "approved by the MCP client tester 1") || !c.world.has("run ask me") {
		t.Errorf("got %q", got)
	}
}

// Nothing runs with an answer that is not exactly that of the question.
func TestApprovalVoid(t *testing.T) {
	accept := func(v any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{codeField: v}}
	}
	forge := func(state string) string {
		payload, mac, _ := strings.Cut(state, ".")
		data, _ := base64.RawURLEncoding.DecodeString(payload)
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(data), `"after":0`, `"after":1`, 1))) + "." + mac
	}
	for name, tt := range map[string]struct {
		command string
		wait    time.Duration
		state   func(string) string
		answer  func(message string) *mcp.ElicitResult
		before  func(*testing.T, *caller, string, string)
		want    string
	}{
		"replayed": {before: func(t *testing.T, c *caller, state, message string) {
			t.Helper()
			c.answer(t, "ask other", state, read(message)) // uses the state up, and is void
		}, want: "answered before"},
		"edited command":        {command: "ask you", want: "the command, the policy or the session is another"},
		"edited state":          {state: forge, want: "not made by this connection"},
		"no state":              {state: func(string) string { return "" }, want: "not made by this connection"},
		"other connection":      {state: func(string) string { other := newCaller(t, Options{}); s, _ := other.ask(t, "ask me"); return s }, want: "not made by this connection"},
		"expired":               {wait: answerWithin + time.Second, want: "expired"},
		"too soon":              {wait: 500 * time.Millisecond, want: "sooner than a person"},
		"accepts without code":  {answer: func(string) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "accept"} }, want: "not answered with its code"},
		"accepts with true":     {answer: func(string) *mcp.ElicitResult { return accept(true) }, want: "not answered with its code"},
		"accepts with defaults": {answer: func(string) *mcp.ElicitResult { return accept("") }, want: "not answered with its code"},
		"another code":          {answer: func(string) *mcp.ElicitResult { return accept("AAAAAA") }, want: "not answered with its code"},
		"declined": {answer: func(message string) *mcp.ElicitResult {
			r := read(message)
			r.Action = "decline"
			return r
		}, want: "not answered with its code"},
		"something ran since": {before: func(t *testing.T, c *caller, _, _ string) {
			t.Helper()
			call(t, c.ClientSession, "run", proposeArgs{Command: "true"})
		}, want: "has run something since"},
		"a file was put since": {before: func(t *testing.T, c *caller, _, _ string) {
			t.Helper()
			call(t, c.ClientSession, "write_file", writeArgs{Path: "a", Content: "x"})
		}, want: "has run something since"},
		"other session": {before: func(t *testing.T, c *caller, _, _ string) {
			t.Helper()
			call(t, c.ClientSession, "end_session", nil)
		}, want: "the session is another"},
		"other policy": {before: func(_ *testing.T, c *caller, _, _ string) { c.world.policy = "sha256:other" }, want: "the policy"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t, Options{})
			state, message := c.ask(t, "ask me")
			if tt.before != nil {
				tt.before(t, c, state, message)
			}
			if tt.wait == 0 {
				tt.wait = 2 * time.Second
			}
			if tt.answer == nil {
				tt.answer = read
			}
			if tt.state != nil {
				state = tt.state(state)
			}
			if tt.command == "" {
				tt.command = "ask me"
			}
			c.later(tt.wait)
			r := c.answer(t, tt.command, state, tt.answer(message))
			if got := words(r); r.IsError || !strings.Contains(got, tt.want) || !strings.Contains(got, "approval.void") {
				t.Errorf("error %v: %q lacks %q", r.IsError, got, tt.want)
			}
			if c.world.has("run ask") {
				t.Error("it ran")
			}
		})
	}
}

// A denied command is not asked about, and an approval does not allow it.
func TestDeniedStaysDenied(t *testing.T) {
	c := newCaller(t, Options{})
	state, message := c.ask(t, "ask me")
	c.later(2 * time.Second)
	if got := words(c.answer(t, "deny me", state, read(message))); !strings.Contains(got, "approval.void") || c.world.has("run ") {
		t.Errorf("got %q", got)
	}
	if r := call(t, c.ClientSession, "run", proposeArgs{Command: "deny this"}); r.InputRequests != nil {
		t.Error("asked about a denied command")
	}
}

// What cannot be shown in whole cannot be approved, and neither can anything without a
// client that can ask and an operator who allows it.
func TestNotAsked(t *testing.T) {
	c := newCaller(t, Options{})
	for name, p := range map[string]proposeArgs{
		"a long command": {Command: "ask " + strings.Repeat("x y\n", maxShown)}, "a long line": {Command: "ask " + strings.Repeat("x", 3000)},
		"a long input": {Command: "ask", Stdin: strings.Repeat("x y\n", maxShown)}, "many parts": {Command: "ask " + strings.Repeat("x", 1500), Stdin: strings.Repeat("x", 1500), Env: map[string]string{"A": strings.Repeat("x", 1500)}},
	} {
		if r := call(t, c.ClientSession, "run", p); r.InputRequests != nil || !strings.Contains(words(r), "needs an approval") {
			t.Errorf("%s: %q", name, words(r))
		}
	}
	incapable := start(t, newWorld(), Options{Approver: Elicit}, mcp.ClientOptions{})
	if r := call(t, incapable, "run", proposeArgs{Command: "ask me"}); r.InputRequests != nil || !strings.Contains(words(r), "needs an approval") {
		t.Errorf("without elicitation: %q", words(r))
	}
	none := newCaller(t, Options{Approver: NoApprover})
	if r := call(t, none.ClientSession, "run", proposeArgs{Command: "ask me"}); r.InputRequests != nil {
		t.Errorf("without an approver: %+v", r)
	}
	state, message := c.ask(t, "ask me")
	if r := none.answer(t, "ask me", state, read(message)); !strings.Contains(words(r), "approval.void") || none.world.has("run ") {
		t.Errorf("without an approver, answered: %q", words(r))
	}
}

// A client whose handler accepts everything approves nothing, and one whose user reads the
// question does: in the protocol's old form, in which the server asks during the call, and
// in the new one.
func TestHandlers(t *testing.T) {
	lanetest.SkipShort(t)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, reads := range []bool{false, true} {
			w := newWorld()
			cs := start(t, w, Options{Approver: Elicit, versions: []string{version}}, mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				w.note("question")
				if !reads {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{codeField: "yes"}}, nil
				}
				time.Sleep(answerAfter)
				return read(r.Params.Message), nil
			}})
			got := words(call(t, cs, "run", proposeArgs{Command: "ask me"}))
			if !w.has("question") || w.has("run ask") != reads || strings.Contains(got, "approval.void") == reads {
				t.Errorf("%s, reads %v: %q, did %q", version, reads, got, w.did)
			}
		}
	}
}

// Questions that wait for an answer are bounded.
func TestQuestionsAreBounded(t *testing.T) {
	c := newCaller(t, Options{})
	for range maxAsked {
		c.ask(t, "ask me")
	}
	if r := call(t, c.ClientSession, "run", proposeArgs{Command: "ask me"}); !r.IsError || !strings.Contains(words(r), "approval.busy") {
		t.Errorf("got %q", words(r))
	}
	c.later(answerWithin + time.Second)
	c.ask(t, "ask me")
}

// No bytes are a state but those that were signed.
func FuzzState(f *testing.F) {
	q := newQuestions()
	signed, _, err := q.signState(proposal.ClientApproval{Session: "s", Proposal: "p", Policy: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add("." + signed)
	f.Add(strings.Replace(signed, ".", "..", 1))
	f.Fuzz(func(t *testing.T, text string) {
		if x, ok := q.verifyState(text); ok && (x.Asked.Session != "s" || strings.TrimRight(text, "\r\n") != signed && strings.NewReplacer("\r", "", "\n", "").Replace(text) != signed) {
			// base64 ignores line breaks, and the last character may have unused bits
			if data, _ := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[0]); !strings.Contains(string(data), `"session":"s"`) {
				t.Errorf("%q is a state", text)
			}
		}
	})
}

// A question shows every part of a proposal that decides what runs: a part that a person does
// not see must not be approved.
func TestQuestionShowsAll(t *testing.T) {
	hidden := []string{"ID", "Why", "Needs", "Phase", "Expect", "Fresh", "Cache", "Origin", "Invalid"} // decide nothing that runs, or no tool can give them; what was approved always runs
	p := proposal.Proposal{Run: "part-Run", Argv: []string{"part-Argv"}, Code: "part-Code", Language: "part-Language", Cwd: "part-Cwd",
		Env: map[string]string{"A": "part-Env"}, Stdin: "part-Stdin", Timeout: proposal.Duration(77 * time.Second), Limits: &proposal.Limits{Pids: 77},
		Network: []string{"part-Network"}, Outputs: []string{"part-Outputs"}, Context: "part-Context", Earlier: &proposal.Earlier{Cells: 2, Text: "part-Earlier"},
		Sourced: map[string]string{"a": "part-Sourced"}}
	words, whole := describeProposal(proposal.Record{}, p)
	if !whole {
		t.Error("a short question is not whole")
	}
	of := reflect.TypeFor[proposal.Proposal]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		want := map[string]string{"Timeout": "1m17s", "Limits": `"pids":77`}[name]
		if want == "" {
			want = "part-" + name
		}
		if !slices.Contains(hidden, name) && !strings.Contains(words, want) {
			t.Errorf("the question lacks %s:\n%s", name, words)
		}
	}
}
