// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/testprogram"
	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
)

var question = model.Request{Model: "m-1", System: "be kind", Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`), MaxOutput: 100,
	Turns: []model.Turn{{Text: "one"}, {Model: true, Text: "two"}, {Text: "three"}}}

var services = []string{"anthropic", "openai", "gemini"}

func ask(t *testing.T, s *modeltest.Server, provider string) (model.Answer, error) {
	t.Helper()
	p, secrets, err := model.New(model.Options{Provider: provider, Getenv: s.Getenv})
	if err != nil || !slices.Equal(secrets, []string{modeltest.Key}) {
		t.Fatal(err, secrets)
	}
	return p.Ask(t.Context(), question)
}

// What is asked arrives whole in each provider's format, and its answer is read.
func TestAsk(t *testing.T) {
	for _, name := range services {
		s := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
			return modeltest.ScriptedAnswer{Text: "hello", Input: 7, Output: 3}
		})
		a, err := ask(t, s, name)
		if err != nil || a != (model.Answer{Text: "hello", Stop: model.Complete, Input: 7, Output: 3}) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		got := s.Requests()[0]
		if got.Provider != name || got.Model != "m-1" || got.System != "be kind" || got.MaxOutput != 100 || !slices.Equal(got.Turns, question.Turns) || !strings.Contains(string(got.Schema), "additionalProperties") {
			t.Errorf("%s: %+v", name, got)
		}
		if int64(len(got.Raw)) > 4*question.MaxInput() {
			t.Errorf("%s: %d bytes were sent for at most %d tokens", name, len(got.Raw), question.MaxInput())
		}
	}
}

// Each way in which an answer ends has its Stop, with the tokens that it took.
func TestStops(t *testing.T) {
	for _, name := range services {
		for _, stop := range []model.Stop{model.Length, model.Refusal, model.Filter} {
			s := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
				return modeltest.ScriptedAnswer{Text: "x", Stop: stop, Input: 5, Output: 1}
			})
			a, err := ask(t, s, name)
			want := stop
			switch {
			case name == "anthropic" && stop == model.Filter:
				want = model.Refusal
			case name == "gemini" && stop == model.Refusal:
				want = model.Filter
			}
			if err != nil || a.Stop != want || a.Input != 5 {
				t.Errorf("%s: %s: %+v, %v", name, stop, a, err)
			}
		}
		s := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
			return modeltest.ScriptedAnswer{Text: "x", Input: -1}
		})
		if a, err := ask(t, s, name); err != nil || a.Input != -1 || a.Output != -1 {
			t.Errorf("%s: no usage: %+v, %v", name, a, err)
		}
	}
}

// A failure is one request, says whether another makes sense and whether it was paid for, and
// has no key in it.
func TestFailures(t *testing.T) {
	lanetest.SkipShort(t)
	for what, c := range map[string]struct {
		said  modeltest.ScriptedAnswer
		want  model.Error
		words string
	}{
		"busy":       {modeltest.ScriptedAnswer{Status: 429, Header: map[string]string{"Retry-After": "7"}}, model.Error{Status: 429, Again: true, After: 7 * time.Second}, "the server says no"},
		"broken":     {modeltest.ScriptedAnswer{Status: 500}, model.Error{Status: 500, Again: true}, "500"},
		"overloaded": {modeltest.ScriptedAnswer{Status: 529}, model.Error{Status: 529, Again: true}, "overloaded"},
		"key":        {modeltest.ScriptedAnswer{Status: 401, Body: `{"error":{"message":"wrong key ` + modeltest.Key + `"}}`}, model.Error{Status: 401}, "wrong key [key]"},
		"long":       {modeltest.ScriptedAnswer{Status: 400, Body: `{"error":{"message":"prompt is too long: 9 tokens"}}`}, model.Error{Status: 400, TooLong: true}, "too long"},
		"long key":   {modeltest.ScriptedAnswer{Status: 403, Body: `{"error":{"message":"` + strings.Repeat("x", 180) + modeltest.Key + `"}}`}, model.Error{Status: 403}, "[key]"},
		"too large":  {modeltest.ScriptedAnswer{Status: 413}, model.Error{Status: 413, TooLong: true}, "413"},
		"moved":      {modeltest.ScriptedAnswer{Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}, model.Error{Status: 307}, "307"},
		"cut":        {modeltest.ScriptedAnswer{Text: strings.Repeat("x", 10_000), Cut: true}, model.Error{Status: 200, Again: true, Spent: true}, "ended early"},
		"malformed":  {modeltest.ScriptedAnswer{Body: `{"content":[{`}, model.Error{Status: 200, Again: true, Spent: true}, "ended early"},
		"ten MB":     {modeltest.ScriptedAnswer{Text: strings.Repeat("x", 10<<20)}, model.Error{Status: 200, Spent: true}, "larger than"},
	} {
		for _, name := range services {
			s := modeltest.New(t, func(int, modeltest.ReceivedRequest) modeltest.ScriptedAnswer { return c.said })
			a, err := ask(t, s, name)
			var e *model.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %s: %+v, %v", name, what, a, err)
				continue
			}
			got := *e
			got.Message = ""
			if got != c.want || !strings.Contains(e.Message, c.words) || strings.Contains(e.Message, modeltest.Key[:9]) || len(e.Message) > 400 {
				t.Errorf("%s: %s: %+v", name, what, *e)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%s: %s: %d requests", name, what, n)
			}
		}
	}
}

// A server that cannot be reached was not paid.
func TestUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	for _, name := range services {
		p, _, err := model.New(model.Options{Provider: name, Getenv: func(v string) string {
			if strings.HasSuffix(v, "_URL") {
				return s.URL
			}
			return modeltest.Key
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Ask(t.Context(), question)
		var e *model.Error
		if !errors.As(err, &e) || !e.Again || e.Spent || !strings.Contains(e.Message, "refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The request is sent below the provider's address, whose path is kept. A name cannot change where
// it goes.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ provider, base, model, want string }{
		{"anthropic", "", "m", "/v1/messages"},
		{"anthropic", "/proxy/", "m", "/proxy/v1/messages"},
		{"openai", "/v1", "m", "/v1/chat/completions"},
		{"openai", "/a%20b/", "m", "/a%20b/chat/completions"},
		{"gemini", "/", "m", "/v1beta/models/m:generateContent"},
		{"gemini", "/proxy", "models/m", "/proxy/v1beta/models/m:generateContent"},
		{"gemini", "", "tunedModels/m", "/v1beta/tunedModels/m:generateContent"},
		{"gemini", "", "m?key=1", ""},
		{"gemini", "", "../m", ""},
		{"gemini", "", "%2e%2e/m", ""},
		{"gemini", "", "m#", ""},
	} {
		var got string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.RequestURI
			_, _ = w.Write([]byte("{}"))
		}))
		p, _, err := model.New(model.Options{Provider: c.provider, Getenv: func(v string) string {
			if strings.HasSuffix(v, "_URL") {
				return s.URL + c.base
			}
			return modeltest.Key
		}})
		if err != nil {
			t.Fatal(err)
		}
		q := question
		q.Model = c.model
		a, err := p.Ask(t.Context(), q)
		s.Close()
		if c.want == "" {
			if e, is := errors.AsType[*model.Error](err); !is || e.Spent || e.Again || got != "" {
				t.Errorf("%+v: %q, %v", c, got, err)
			}
			continue
		}
		if got != "POST "+c.want || err != nil || a != (model.Answer{Stop: model.Other, Input: -1, Output: -1}) {
			t.Errorf("%+v: %q, %+v, %v", c, got, a, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for what, c := range map[string]struct {
		provider, key, base, want string
	}{
		"unknown":     {"else", "k", "", "model.provider"},
		"no key":      {"openai", "", "", "model.key"},
		"plain http":  {"openai", "k", "http://models.example/v1", "model.address"},
		"credentials": {"gemini", "k", "https://a:b@models.example/", "model.address"},
		"query":       {"anthropic", "k", "https://models.example/?key=1", "model.address"},
		"no command":  {"command", "k", "", "model.command"},
	} {
		_, _, err := model.New(model.Options{Provider: c.provider, Getenv: func(v string) string {
			if strings.HasSuffix(v, "_URL") {
				return c.base
			}
			return c.key
		}})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A program gets the question and the named variables alone; what it started is killed.
func TestCommand(t *testing.T) {
	lanetest.SkipShort(t)
	t.Setenv("OTHER_SECRET", "not for the program")
	for script, want := range map[string]model.Answer{
		`read -r q; printf '{"text":"%s","stop":"complete","input_tokens":3,"output_tokens":2}\n' "$A$OTHER_SECRET"`: {Text: "a-value", Stop: model.Complete, Input: 3, Output: 2},
		`printf '{"text":"x","stop":"refusal"}'`:                                                      {Text: "x", Stop: model.Refusal, Input: -1, Output: -1},
		`grep -q '"max_output_tokens":100' && echo '{"text":"seen","stop":"complete"}'; sleep 300 & `: {Text: "seen", Stop: model.Complete, Input: -1, Output: -1},
	} {
		a, err := command(t, script)
		if err != nil || a != want {
			t.Errorf("%s: %+v, %v", script, a, err)
		}
	}
	for script, words := range map[string]string{
		`exit 3`: "failed", `echo hello`: "not one line", `echo '{"text":"x","stop":"complete","more":1}'`: "not one line",
		`head -c 6000000 /dev/zero`: "larger than", `cat; echo '{}'`: "not one line",
	} {
		var e *model.Error
		if _, err := command(t, script); !errors.As(err, &e) || !strings.Contains(e.Message, words) || !e.Spent {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func command(t *testing.T, script string) (model.Answer, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent")
	testprogram.WriteExecutable(t, file, "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n")
	p, _, err := model.New(model.Options{Provider: "command", Command: file, Env: []string{"A"}, Getenv: func(string) string { return "a-value" }})
	if err != nil {
		t.Fatal(err)
	}
	return p.Ask(t.Context(), question)
}
