// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A method is one of gate.Session whose question and answer are JSON documents, at both ends: call
// is the client's, handler the server's. Those with streams and files are in commands.go,
// process.go and files.go.
type method[Q, A any] struct {
	path   string
	answer func(at inSession, question Q) (A, error)
}

// inSession is where the server answers a question.
type inSession struct {
	ctx     context.Context // of the request
	session gate.Session
	files   *announcedFiles
}

func (m method[Q, A]) callSession(ctx context.Context, s *Session, question Q) (answer A, err error) {
	err = s.callServer(ctx, request{method: http.MethodPost, path: m.path, document: question}, &answer)
	return answer, err
}

func (m method[Q, A]) handler(s *server) (pattern string, h http.HandlerFunc) {
	handle := func(w http.ResponseWriter, r *http.Request, session gate.Session) error {
		question, err := readDocument[Q](w, r)
		if err != nil {
			return err
		}
		answer, err := m.answer(inSession{r.Context(), session, &s.files}, question)
		sendAnswer(w, answer, err)
		return nil
	}
	return "POST " + m.path, s.limitRequests(s.slots, s.requireSession(handle))
}

// methods are what the server serves.
var methods = []interface {
	handler(s *server) (string, http.HandlerFunc)
}{asked, list, changes, diff, pause}

type noQuestion struct{}

type noAnswer struct{}

var asked = method[proposal.Proposal, proposal.ClientApproval]{"/asked",
	func(at inSession, p proposal.Proposal) (proposal.ClientApproval, error) {
		return at.session.Asked(at.ctx, p)
	}}

// Asked is gate.Session.Asked.
func (s *Session) Asked(ctx context.Context, p proposal.Proposal) (proposal.ClientApproval, error) {
	return asked.callSession(ctx, s, p)
}

var list = method[string, proposal.Changes]{"/list", func(at inSession, pattern string) (proposal.Changes, error) {
	if len(pattern) > maxName {
		return proposal.Changes{}, errPattern
	}
	return at.session.List(at.ctx, pattern)
}}

var errPattern = &proposal.StopError{Code: "session.request", Message: "the pattern is too long",
	Hint: fmt.Sprintf("list with a pattern of at most %d bytes", maxName)}

// List is gate.Session.List.
func (s *Session) List(ctx context.Context, pattern string) (proposal.Changes, error) {
	return list.callSession(ctx, s, pattern)
}

// pause's question is whether to pause; else the session is resumed.
var pause = method[bool, noAnswer]{"/pause", func(at inSession, pause bool) (noAnswer, error) {
	if pause {
		return noAnswer{}, at.session.Pause(at.ctx)
	}
	return noAnswer{}, at.session.Resume(at.ctx)
}}

// Pause is gate.Session.Pause.
func (s *Session) Pause(ctx context.Context) error {
	_, err := pause.callSession(ctx, s, true)
	return err
}

// Resume is gate.Session.Resume.
func (s *Session) Resume(ctx context.Context) error {
	_, err := pause.callSession(ctx, s, false)
	return err
}

var changes = method[noQuestion, proposal.Changes]{"/changes",
	func(at inSession, _ noQuestion) (proposal.Changes, error) {
		return at.session.Changes(at.ctx)
	}}

// Changes is gate.Session.Changes.
func (s *Session) Changes(ctx context.Context) (proposal.Changes, error) {
	return changes.callSession(ctx, s, noQuestion{})
}

var diff = method[[]string, proposal.Diff]{"/diff", func(at inSession, paths []string) (proposal.Diff, error) {
	d, err := at.session.Diff(at.ctx, paths...)
	d.Patch.File = at.files.announcePath(d.Patch.File)
	return d, err
}}

// Diff is gate.Session.Diff. Patch.File is a copy among the artifacts.
func (s *Session) Diff(ctx context.Context, paths ...string) (proposal.Diff, error) {
	if paths == nil {
		paths = []string{}
	}
	d, err := diff.callSession(ctx, s, paths)
	if s.client.local {
		return d, err
	}
	for _, f := range d.Files {
		for _, state := range []*proposal.FileState{f.Old, f.New} {
			if state != nil {
				state.File = ""
			}
		}
	}
	d.Patch.File = s.copyFile(ctx, d.Patch.File)
	return d, err
}
