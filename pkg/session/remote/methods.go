// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"context"
	"net/http"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A method is one of gate.Session whose question and answer are JSON documents, at both ends: call
// is the client's, handler the server's. Those with streams and files are in commands.go,
// process.go and files.go.
type method[Q, A any] struct {
	path   string
	answer func(ctx context.Context, s *server, session gate.Session, question Q) (A, error)
}

func (m method[Q, A]) call(ctx context.Context, s *Session, question Q) (answer A, err error) {
	err = s.call(ctx, request{method: http.MethodPost, path: m.path, document: question}, &answer)
	return answer, err
}

func (m method[Q, A]) handler(s *server) (pattern string, h http.HandlerFunc) {
	return "POST " + m.path, s.served(s.slots, s.inside(func(w http.ResponseWriter, r *http.Request, session gate.Session) error {
		question, err := readDocument[Q](w, r)
		if err != nil {
			return err
		}
		answer, err := m.answer(r.Context(), s, session, question)
		sendAnswer(w, answer, err)
		return nil
	}))
}

// methods are what the server serves.
var methods = []interface {
	handler(s *server) (string, http.HandlerFunc)
}{asked, list, changes, diff}

type noQuestion struct{}

var asked = method[proposal.Proposal, proposal.ClientApproval]{"/asked", func(ctx context.Context, _ *server, session gate.Session, p proposal.Proposal) (proposal.ClientApproval, error) {
	return session.Asked(ctx, p)
}}

// Asked is gate.Session.Asked.
func (s *Session) Asked(ctx context.Context, p proposal.Proposal) (proposal.ClientApproval, error) {
	return asked.call(ctx, s, p)
}

var list = method[string, proposal.Changes]{"/list", func(ctx context.Context, _ *server, session gate.Session, pattern string) (proposal.Changes, error) {
	return session.List(ctx, pattern)
}}

// List is gate.Session.List.
func (s *Session) List(ctx context.Context, pattern string) (proposal.Changes, error) {
	return list.call(ctx, s, pattern)
}

var changes = method[noQuestion, proposal.Changes]{"/changes", func(ctx context.Context, _ *server, session gate.Session, _ noQuestion) (proposal.Changes, error) {
	return session.Changes(ctx)
}}

// Changes is gate.Session.Changes.
func (s *Session) Changes(ctx context.Context) (proposal.Changes, error) {
	return changes.call(ctx, s, noQuestion{})
}

var diff = method[[]string, proposal.Diff]{"/diff", func(ctx context.Context, s *server, session gate.Session, paths []string) (proposal.Diff, error) {
	d, err := session.Diff(ctx, paths...)
	d.Patch.File = s.files.announce(d.Patch.File)
	return d, err
}}

// Diff is gate.Session.Diff. Patch.File is a copy among the artifacts.
func (s *Session) Diff(ctx context.Context, paths ...string) (proposal.Diff, error) {
	if paths == nil {
		paths = []string{}
	}
	d, err := diff.call(ctx, s, paths)
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
	d.Patch.File = s.copied(ctx, d.Patch.File)
	return d, err
}
