// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What an approval through a client is
//
// Policy asks about a proposal, and the client can elicit an answer. Then the server answers
// the call with a question instead of a result. The question shows the whole proposal and a
// random code, and has a state that the client must return with the answer. The proposal
// runs only if all of this is true:
//
//   - the state has this server's signature (HMAC with a key of this connection), is not
//     older than answerWithin, and was not used before; a state is used up by the first
//     answer, whatever it is;
//   - the answer is "accept" with the code of the question, which a client that accepts
//     everything does not know to type, and came not sooner than a person can read;
//   - the proposal of the second call, the policy and the session are those of the
//     question, and the session has run nothing since: gate.Session.DoApproved.
//
// It proves that the client answered. A client that lets its model answer can approve
// anything that policy asks about; nothing that policy denies. So the log names the client,
// not a person, and Options.Approver is NoApprover by default.

const (
	answerWithin = 5 * time.Minute
	answerAfter  = time.Second // sooner than this, no person has read the question
	maxAsked     = 16          // questions that wait for an answer
	maxShown     = 4000        // displayed units of a question; what is longer cannot be approved
)

// questions are what a client was asked and has not answered.
type questions struct {
	key   [32]byte
	now   func() time.Time
	after time.Duration

	mu   sync.Mutex
	open map[string]pendingQuestion // by the state's nonce
}

// A pendingQuestion question waits for its answer.
type pendingQuestion struct {
	code string
	time time.Time
}

func newQuestions() *questions {
	q := &questions{now: time.Now, after: answerAfter, open: map[string]pendingQuestion{}}
	_, _ = rand.Read(q.key[:]) // never fails
	return q
}

// A state is what a question is bound to.
type state struct {
	Nonce string                  `json:"nonce"`
	Time  time.Time               `json:"time"`
	Asked proposal.ClientApproval `json:"asked"`
}

// signState returns the state of a new question about asked, and its code.
func (q *questions) signState(asked proposal.ClientApproval) (signed, code string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.open, func(_ string, p pendingQuestion) bool { return q.now().Sub(p.time) > answerWithin })
	if len(q.open) >= maxAsked {
		return "", "", &proposal.StopError{Code: "approval.busy",
			Message: fmt.Sprintf("%d questions wait for an answer", maxAsked),
			Hint:    fmt.Sprintf("answer them, or wait %s", answerWithin)}
	}
	x := state{Nonce: rand.Text(), Time: q.now(), Asked: asked}
	data, err := json.Marshal(x)
	if err != nil {
		return "", "", err
	}
	code = rand.Text()[:6]
	q.open[x.Nonce] = pendingQuestion{code, x.Time}
	return base64.RawURLEncoding.EncodeToString(data) + "." + base64.RawURLEncoding.EncodeToString(q.computeMAC(data)),
		code, nil
}

func (q *questions) computeMAC(data []byte) []byte {
	h := hmac.New(sha256.New, q.key[:])
	h.Write(data)
	return h.Sum(nil)
}

// maxState is the maximum length of a state: longer ones are not ours.
const maxState = 4096

// verifyState returns a state that this server signed.
func (q *questions) verifyState(signed string) (x state, ok bool) {
	payload, mac, _ := strings.Cut(signed, ".")
	if len(signed) > maxState {
		return x, false
	}
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return x, false
	}
	given, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(given, q.computeMAC(data)) {
		return x, false
	}
	return x, json.Unmarshal(data, &x) == nil
}

// useState uses up a state. It returns what the question was about if answer approves it, or
// why it does not.
func (q *questions) useState(signed string, answer any) (proposal.ClientApproval, string) {
	x, ok := q.verifyState(signed)
	if !ok {
		return x.Asked, "the state was not made by this connection"
	}
	q.mu.Lock()
	asked, open := q.open[x.Nonce]
	delete(q.open, x.Nonce)
	q.mu.Unlock()
	age := q.now().Sub(x.Time)
	switch {
	case !open:
		return x.Asked, "the question was answered before"
	case age > answerWithin || age < 0:
		return x.Asked, "the question has expired"
	case !acceptsWithCode(answer, asked.code):
		return x.Asked, "the question was not answered with its code"
	case age < q.after:
		return x.Asked, "the answer came sooner than a person can read the question"
	}
	return x.Asked, ""
}

// acceptsWithCode reports whether answer accepts with the code.
func acceptsWithCode(answer any, code string) bool {
	r, ok := answer.(*mcp.ElicitResult)
	if !ok || r == nil || r.Action != "accept" {
		return false
	}
	given, _ := r.Content[codeField].(string)
	return subtle.ConstantTimeCompare([]byte(strings.ToUpper(strings.TrimSpace(given))), []byte(code)) == 1
}

// The names of the question in a result, and of the code in its form.
const (
	approveKey = "approve"
	codeField  = "code"
)

// takeApproval returns the approval that the call has, if it answers a question, or why it is
// void. A call that answers none has neither.
func (c *client) takeApproval(
	ctx context.Context, req *mcp.CallToolRequest, s *session, p proposal.Proposal,
) (*proposal.ClientApproval, *reason, error) {
	params := req.Params
	if len(params.InputResponses) == 0 && params.RequestState == "" {
		return nil, nil, nil
	}
	if !c.canElicit(req) {
		return nil, voidReason("this server does not accept approvals from this client"), nil
	}
	asked, why := c.asked.useState(params.RequestState, params.InputResponses[approveKey])
	if why != "" {
		return nil, voidReason(why), nil
	}
	now, err := s.Asked(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	asked.Client, asked.Time = clientName(req), c.asked.now().UTC()
	if !asked.Covers(now) {
		return nil, voidReason("the command, the policy or the session is another, or the session has run something since"), nil
	}
	return &asked, nil, nil
}

func voidReason(why string) *reason {
	return &reason{Rule: "approval.void", Message: why + "; nothing ran",
		Instead: "propose the command again, and have the new question answered"}
}

// canElicit reports whether the client may be asked: the operator allows it, and the client
// can show a form.
func (c *client) canElicit(req *mcp.CallToolRequest) bool {
	capable := req.ClientCapabilities()
	if c.server.o.Approver != Elicit || capable == nil || capable.Elicitation == nil {
		return false
	}
	return capable.Elicitation.Form != nil || capable.Elicitation.URL == nil
}

// askApproval returns the question about r, or nil if the client cannot be asked.
func (c *client) askApproval(
	ctx context.Context, req *mcp.CallToolRequest, s *session, r proposal.Record, p proposal.Proposal,
) (*mcp.CallToolResult, error) {
	p.Earlier, p.Sourced = r.Proposal.Earlier, r.Proposal.Sourced
	words, whole := describeProposal(r, p)
	if !c.canElicit(req) || !whole {
		return nil, nil
	}
	asked, err := s.Asked(ctx, p)
	if err != nil {
		return nil, err
	}
	signed, code, err := c.asked.signState(asked)
	if err != nil {
		return nil, err
	}
	words += fmt.Sprintf("To run it once, type the code %s. The log records the answer as that of the %s.", code,
		clientName(req))
	return &mcp.CallToolResult{RequestState: signed, InputRequests: mcp.InputRequestMap{approveKey: &mcp.ElicitParams{
		Mode: "form", Message: words, RequestedSchema: &jsonschema.Schema{Type: "object", Required: []string{codeField},
			Properties: map[string]*jsonschema.Schema{codeField: {Type: "string", Title: "Code",
				Description: "the code in the message; anything else refuses"}}},
	}}}, nil
}

// describeProposal shows the whole of what would run. It reports false if that is too long: what a
// person cannot see must not be approved.
func describeProposal(r proposal.Record, p proposal.Proposal) (string, bool) {
	var b strings.Builder
	b.WriteString("fumehood: an agent proposes a command, and policy asks for an approval.\n")
	for _, x := range reasonsOf(r) {
		fmt.Fprintf(&b, "%s: %s\n", x.Rule, x.Message)
	}
	left, whole := maxShown, true
	for _, field := range fieldsOf(p) {
		shown := text.Excerpt([]byte(field[1]), nil, int64(len(field[1])), left)
		left -= shown.Units
		whole = whole && shown.Omitted == 0 && left > 0
		fmt.Fprintf(&b, "%s:\n%s", field[0], fenceLines(shown.Text))
	}
	return b.String(), whole
}

// fieldsOf returns the names and texts of the parts of p that decide what runs.
func fieldsOf(p proposal.Proposal) (list [][2]string) {
	add := func(name, value string) {
		if value != "" && value != "null" {
			list = append(list, [2]string{name, value})
		}
	}
	words := func(name string, v any) {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // strings and numbers
		add(name, strings.TrimSpace(b.String()))
	}
	if p.Earlier != nil {
		add(p.Earlier.Words(), p.Earlier.Text)
	}
	add("command", p.Run)
	words("files that it sources", p.Sourced)
	words("argv", p.Argv)
	add(p.Language+" code", p.Code)
	add("with the state of the context", p.Context)
	add("directory", p.Cwd)
	words("variables", p.Env)
	add("input", p.Stdin)
	words("network", p.Network)
	words("limits", p.Limits)
	if p.Timeout > 0 {
		add("time limit", p.Timeout.String())
	}
	words("exported files", p.Outputs)
	return list
}
