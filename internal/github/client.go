// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/retry"
)

// The defaults of Options.
const (
	DefaultBaseURL   = "https://api.github.com"
	DefaultMaxWait   = 2 * time.Minute
	DefaultTimeout   = 30 * time.Second
	DefaultUserAgent = "fumehood"
)

// Options configure a Client. Only Repository is required; any other zero field
// means the default given beside it.
type Options struct {
	BaseURL    string // the runner's GITHUB_API_URL, on GHES with its /api/v3; DefaultBaseURL
	Token      string // without it, only public data can be read
	Repository string // owner/name

	// Transport sends the requests; a clone of http.DefaultTransport. It need not
	// bound the responses. It must not add credentials.
	Transport http.RoundTripper
	// Sleep waits for d, or until ctx is done and then returns ctx's error; by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
	Now   func() time.Time // time.Now

	MaxWait   time.Duration // total waiting time of one call; DefaultMaxWait
	Timeout   time.Duration // of one request and its response; DefaultTimeout
	UserAgent string        // DefaultUserAgent
}

// A Client reads and writes one repository. It is safe for concurrent use.
type Client struct {
	gh          *gh.Client
	wire        *apiTransport
	fetch       *http.Client // for hosts other than the API: never sends the token
	owner, name string

	sleep   func(context.Context, time.Duration) error
	now     func() time.Time
	maxWait time.Duration
	timeout time.Duration
}

// New returns a Client. It sends nothing.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	owner, name, err := splitRepository(o.Repository)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("invalid GitHub token: it has spaces or invalid characters")
	}
	o = withDefaults(o)
	c := &Client{
		wire: &apiTransport{next: o.Transport, base: base, token: o.Token, cache: newCache(maxCache), now: o.Now},
		fetch: &http.Client{Transport: o.Transport,
			CheckRedirect: keepTo(func(u *url.URL) error { return checkPlace(u, base) })},
		owner: owner, name: name,
		sleep: o.Sleep, now: o.Now, maxWait: o.MaxWait, timeout: o.Timeout,
	}
	c.gh = gh.NewClient(&http.Client{Transport: c.wire, CheckRedirect: keepTo(c.wire.requireOwnHost)})
	c.gh.BaseURL, c.gh.UserAgent = base, o.UserAgent
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxResponseHeaderBytes = maxHeader
		o.Transport = transport
	}
	if o.Sleep == nil {
		o.Sleep = retry.Sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxWait == 0 {
		o.MaxWait = DefaultMaxWait
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	return o
}

// parseBase parses the API's URL and adds the trailing slash that go-github needs.
// Plain http is accepted, since a GHES without TLS gives its runners such a URL.
func parseBase(s string) (*url.URL, error) {
	if s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimRight(s, "/") + "/")
	if err != nil {
		return nil, fmt.Errorf("invalid GitHub API URL %q", s)
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fmt.Errorf("invalid GitHub API URL %q: want for example %q", s, DefaultBaseURL)
	}
	return u, nil
}

var repositoryName = pattern.New(`^[A-Za-z0-9_.-]{1,100}$`)

func splitRepository(s string) (owner, name string, err error) {
	owner, name, _ = strings.Cut(s, "/")
	for _, part := range []string{owner, name} {
		if !repositoryName.MatchString(part) || part == "." || part == ".." {
			return "", "", fmt.Errorf("invalid repository %q: want owner/name", s)
		}
	}
	return owner, name, nil
}

// Scopes returns the OAuth scopes of the token that GitHub last reported. If they are not
// empty, the token is a classic personal token, which is not limited to one repository.
func (c *Client) Scopes() string { return c.wire.lastScopes() }

// ClockOffset returns how far GitHub's clock is ahead of this machine's, to the second, as the first
// response said it; 0 before it.
func (c *Client) ClockOffset() time.Duration { return c.wire.clockOffset() }
