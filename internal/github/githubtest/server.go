// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options configure a Server. The zero value is the private repository
// Codertocat/Hello-World of GitHub's own examples, at api.github.com's path, with
// the machine's clock.
type Options struct {
	Repository string           // owner/name; default "Codertocat/Hello-World"
	ID         int64            // of the repository; default 186853002
	Public     bool             // reading needs no right
	Git        string           // the repository's; see Repository.Git
	Prefix     string           // "/api/v3" for a GitHub Enterprise Server
	ServerURL  string           // of the web pages; default "https://github.com"
	Now        func() time.Time // default time.Now
	Quota      int              // requests in an hour for each token; default 5000
}

// A Server is a fake GitHub. Its methods may be called at any time, from any
// goroutine, also while it serves.
type Server struct {
	// URL is the API's address, including Options.Prefix, without a trailing slash.
	URL string

	options Options
	rules   *description
	blobURL string

	mu         sync.Mutex
	lastID     int64
	home       *repository
	repos      map[string]*repository // by lower-case full name
	former     map[string]bool        // lower-case former names of the home repository
	users      map[string]User        // by lower-case login
	tokens     map[string]*Token      // by the token itself
	blobs      map[string]blob
	find       func(run int64) []Artifact
	found      map[string]int64 // ids of found artifacts
	shifted    map[string]int   // lists that a duplicate page shifted
	faults     []*Fault
	hooks      []hook
	log        []*Request
	violations []Violation
}

type hook struct {
	op string
	f  func(r *http.Request)
}

// New serves a fake GitHub on loopback until the test ends. Any remaining
// violations then fail the test.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	api, blobs := httptest.NewUnstartedServer(s), httptest.NewUnstartedServer(http.HandlerFunc(s.serveBlob))
	s.URL = "http://" + api.Listener.Addr().String() + s.options.Prefix
	s.blobURL = "http://" + blobs.Listener.Addr().String()
	api.Start()
	blobs.Start()
	t.Cleanup(func() {
		api.CloseClientConnections()
		blobs.CloseClientConnections()
		api.Close()
		blobs.Close()
		for _, v := range s.Violations() {
			t.Errorf("github: %v", v)
		}
	})
	return s
}

// NewHandler is New without a listener and without a test. Before the first request,
// the caller must set URL to the address that clients use, Prefix included.
func NewHandler(o Options) (*Server, error) {
	rules, err := loadDescription()
	if err != nil {
		return nil, err
	}
	if o.Repository == "" {
		o.Repository, o.ID = "Codertocat/Hello-World", 186853002
	}
	if o.ServerURL == "" {
		o.ServerURL = "https://github.com"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Quota == 0 {
		o.Quota = 5000
	}
	s := &Server{
		options: o, rules: rules, lastID: 500_000_000,
		repos: map[string]*repository{}, former: map[string]bool{}, users: map[string]User{},
		tokens: map[string]*Token{},
		blobs:  map[string]blob{}, found: map[string]int64{}, shifted: map[string]int{},
	}
	for _, u := range knownUsers {
		s.AddUser(u)
	}
	s.AddRepository(Repository{Name: o.Repository, ID: o.ID, Private: !o.Public, Git: o.Git})
	s.home = s.repos[strings.ToLower(o.Repository)]
	return s, nil
}

// BeforeRequest makes the server call f before it handles a request for op ("" for every
// operation): there a test can move a head, or delete or add a comment.
func (s *Server) BeforeRequest(op string, f func(r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, hook{op, f})
}

// hooksFor is called without the lock, so that hooks may use the Server.
func (s *Server) hooksFor(op string) []hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []hook
	for _, h := range s.hooks {
		if h.op == "" || h.op == op {
			list = append(list, h)
		}
	}
	return list
}

// now returns the time as GitHub reports it: UTC, to the second.
func (s *Server) now() time.Time { return s.options.Now().UTC().Truncate(time.Second) }

// nextID returns ascending ids, shared by all kinds of objects.
func (s *Server) nextID() int64 {
	s.lastID++
	return s.lastID
}
