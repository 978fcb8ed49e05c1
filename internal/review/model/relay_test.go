// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
)

// relayTo returns a Relay whose requests s answers, and a function that ends the process that asks.
func relayTo(t *testing.T, p model.Provider, name string) (r *model.Relay, end func(), ended chan bool) {
	t.Helper()
	questions, out := io.Pipe()
	in, answers := io.Pipe()
	ended = make(chan bool, 1)
	clean := func(s string) string { return strings.ReplaceAll(s, modeltest.Key, "[key]") }
	go model.Serve(t.Context(), questions, answers, p, name, clean)
	t.Cleanup(func() { out.Close() })
	return model.NewRelay(in, out, func() { ended <- true }), func() { answers.Close() }, ended
}

func provider(t *testing.T, s *modeltest.Server) model.Provider {
	t.Helper()
	p, _, err := model.New(model.Options{Provider: "anthropic", Getenv: s.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is asked through another process arrives whole, and so do answers and errors, without the
// key. One that comes too late is not taken for that of a later request.
func TestRelay(t *testing.T) {
	release := make(chan bool)
	s := modeltest.New(t, func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		switch n {
		case 1:
			return modeltest.ScriptedAnswer{Text: "hello " + modeltest.Key, Input: 7, Output: 3}
		case 2:
			return modeltest.ScriptedAnswer{Status: 429, Header: map[string]string{"Retry-After": "70"}, Body: `{"error":{"message":"busy ` + modeltest.Key + `"}}`}
		case 3:
			<-release
			return modeltest.ScriptedAnswer{Text: "late"}
		}
		return modeltest.ScriptedAnswer{Text: "last"}
	})
	r, end, ended := relayTo(t, provider(t, s), question.Model)
	if a, err := r.Ask(t.Context(), question); err != nil || a != (model.Answer{Text: "hello [key]", Stop: model.Complete, Input: 7, Output: 3}) {
		t.Errorf("%+v, %v", a, err)
	}
	var failed *model.Error
	if _, err := r.Ask(t.Context(), question); !errors.As(err, &failed) || failed.Status != 429 || !failed.Again || failed.After != 70*time.Second || strings.Contains(err.Error(), modeltest.Key) {
		t.Errorf("%+v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Ask(short, question); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(release)
	if a, err := r.Ask(t.Context(), question); err != nil || a.Text != "last" {
		t.Errorf("%+v, %v", a, err)
	}
	if asked := s.Requests(); len(asked) != 4 || asked[0].System != question.System || len(asked[0].Turns) != len(question.Turns) || asked[0].MaxOutput != question.MaxOutput {
		t.Errorf("%+v", asked)
	}
	end()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the end of the process that asks is not noticed")
	}
}

// The process with the key asks no other model.
func TestServeOtherModel(t *testing.T) {
	s := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		return modeltest.ScriptedAnswer{Text: "no"}
	})
	r, _, _ := relayTo(t, provider(t, s), "a cheaper one")
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if a, err := r.Ask(short, question); err == nil || len(s.Requests()) != 0 {
		t.Errorf("%+v, %d requests", a, len(s.Requests()))
	}
}

// always answers at once.
type always struct{ n int }

func (a *always) Ask(context.Context, model.Request) (model.Answer, error) {
	a.n++
	return model.Answer{Text: "x", Stop: model.Complete}, nil
}

// No process that asks through another can ask without end.
func TestServeBounded(t *testing.T) {
	p := &always{}
	r, _, _ := relayTo(t, p, question.Model)
	for range model.MaxServed {
		if _, err := r.Ask(t.Context(), question); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Ask(short, question); err == nil || p.n != model.MaxServed {
		t.Errorf("%d requests, %v", p.n, err)
	}
}
