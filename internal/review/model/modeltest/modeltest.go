// SPDX-License-Identifier: Apache-2.0

// Package modeltest is a server on loopback that answers in the wire formats of the providers
// of package model, as a test says. It refuses requests that these formats do not describe; the
// files in schemas are what the providers publish of them.
package modeltest

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fumehood/fumehood/internal/review/model"
)

//go:embed schemas
var schemas embed.FS

// ReadSchema returns what a provider publishes of its format: an object with request and response.
func ReadSchema(t testing.TB, provider string) *jsonschema.Schema {
	t.Helper()
	data, err := schemas.ReadFile("schemas/" + provider + ".json")
	var s jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// Key is the key that a server accepts.
const Key = "sk-test-ThisKeyIsForTheModelOnly-0123456789abcdef"

// ReceivedRequest is a request as the server has read it.
type ReceivedRequest struct {
	Provider, Model, System string
	Turns                   []model.Turn
	Schema                  json.RawMessage
	MaxOutput               int64
	Raw                     string // the body
}

// LastText is the text of the last turn.
func (a ReceivedRequest) LastText() string { return a.Turns[len(a.Turns)-1].Text }

// ScriptedAnswer is what the server answers.
type ScriptedAnswer struct {
	Text          string
	Stop          model.Stop // model.Complete if ""
	Input, Output int64      // reported tokens; the bytes of the texts, divided by 4, if 0; none if negative
	Status        int        // of an error, 0 for none
	Header        map[string]string
	Body          string // instead of everything else
	Cut           bool   // end the connection in the middle of the answer
}

// A Server answers. Its URL is the address of anthropic and gemini; see Getenv.
type Server struct {
	*httptest.Server
	Accepts string // the key; Key unless a test that looks for its key in all processes changes it
	t       testing.TB
	answer  func(n int, a ReceivedRequest) ScriptedAnswer
	schemas map[string]*jsonschema.Resolved // of each provider

	mu    sync.Mutex
	asked []ReceivedRequest
}

// New starts a server that ends with the test. answer gets the number of the request, from 1.
func New(t testing.TB, answer func(n int, a ReceivedRequest) ScriptedAnswer) *Server {
	s := &Server{Accepts: Key, t: t, answer: answer, schemas: map[string]*jsonschema.Resolved{}}
	mux := http.NewServeMux()
	for path, f := range map[string]format{"POST /v1/messages": anthropic{}, "POST /openai/chat/completions": openai{},
		"POST /v1beta/models/{call}": gemini{}} {
		resolved, err := ReadSchema(t, f.name()).Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.schemas[f.name()] = resolved
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serveFormat(f, w, r) })
	}
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// ProviderEnv returns the variables of a provider.
func (s *Server) ProviderEnv(provider string) []string {
	base := s.URL
	if provider == "openai" {
		base += "/openai"
	}
	name := strings.ToUpper(provider)
	return []string{name + "_API_KEY=" + s.Accepts, name + "_BASE_URL=" + base}
}

// Getenv looks up Env.
func (s *Server) Getenv(name string) string {
	provider, _, _ := strings.Cut(name, "_")
	for _, v := range s.ProviderEnv(strings.ToLower(provider)) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// Requests returns the requests so far.
func (s *Server) Requests() []ReceivedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ReceivedRequest(nil), s.asked...)
}

// Restart counts requests from 1 again, and forgets those so far.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}

// A format is the wire format of a provider.
type format interface {
	name() string
	key(*http.Request) string
	read(*http.Request, []byte) (ReceivedRequest, error)
	write(ReceivedRequest, ScriptedAnswer) any
}

func (s *Server) serveFormat(f format, w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	a, err := f.read(r, data)
	if err == nil {
		err = errors.Join(a.checkRequired(), checkHeader(r), s.validateBody(f, "request", data))
	}
	if err != nil || f.key(r) != s.Accepts {
		s.t.Errorf("%s: a wrong request: %v, key %q", f.name(), err, f.key(r))
		http.Error(w, `{"error":{"message":"wrong"}}`, http.StatusBadRequest)
		return
	}
	a.Provider, a.Raw = f.name(), string(data)
	s.mu.Lock()
	s.asked = append(s.asked, a)
	n := len(s.asked)
	s.mu.Unlock()
	said := s.answer(n, a)
	for name, value := range said.Header {
		w.Header().Set(name, value)
	}
	said.sendTo(w, s.encodeAnswer(f, a, said.withUsage(a)))
}

// encodeAnswer encodes an answer, and requires that the provider could send it.
func (s *Server) encodeAnswer(f format, a ReceivedRequest, said ScriptedAnswer) []byte {
	data, err := json.Marshal(f.write(a, said))
	if err == nil && said.Input >= 0 { // a service that reports no tokens differs from the provider
		err = s.validateBody(f, "response", data)
	}
	if err != nil {
		s.t.Errorf("%s: a wrong answer: %v", f.name(), err)
	}
	return data
}

// validateBody compares a body with what the provider publishes.
func (s *Server) validateBody(f format, side string, data []byte) error {
	var body any
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	return s.schemas[f.name()].Validate(map[string]any{side: body})
}

// checkHeader requires the headers that are the same for all formats.
func checkHeader(r *http.Request) error {
	for name, want := range map[string]string{"Content-Type": "application/json", "Accept": "application/json",
		"User-Agent": "fumehood"} {
		if got := r.Header.Get(name); got != want {
			return fmt.Errorf("%s is %q", name, got)
		}
	}
	return nil
}

// checkRequired requires what every format has.
func (a ReceivedRequest) checkRequired() error {
	if a.Model == "" || a.System == "" || a.MaxOutput < 1 || !json.Valid(a.Schema) || len(a.Turns)%2 != 1 {
		return fmt.Errorf("model %q, %d turns, %d tokens, schema %.20s", a.Model, len(a.Turns), a.MaxOutput, a.Schema)
	}
	for i, t := range a.Turns {
		if t.Model != (i%2 == 1) || t.Text == "" {
			return fmt.Errorf("turn %d: %v %.20q", i, t.Model, t.Text)
		}
	}
	return nil
}

func (s ScriptedAnswer) withUsage(a ReceivedRequest) ScriptedAnswer {
	if s.Input == 0 {
		s.Input, s.Output = int64(len(a.Raw)/4), min(int64(len(s.Text)/4), a.MaxOutput)
	}
	if s.Stop == "" {
		s.Stop = model.Complete
	}
	return s
}

func (s ScriptedAnswer) sendTo(w http.ResponseWriter, data []byte) {
	if s.Body != "" {
		data = []byte(s.Body)
	}
	w.Header().Set("Content-Type", "application/json")
	if s.Status != 0 {
		w.WriteHeader(s.Status)
		if s.Body == "" {
			data = []byte(`{"type":"error","error":{"type":"x","code":null,"param":null,"message":"the server says no"}}`)
		}
	}
	if s.Cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(data)
}

// decodeStrictly decodes data, which must be one value, and of which v must have every field.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}
