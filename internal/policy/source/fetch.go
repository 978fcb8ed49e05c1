// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	maxRedirects = 5
	hintFetch    = "check that the address can be reached from here, without a password"
)

// newClient sends requests. Plain http is for loopback only, and only if the spec says so: a
// redirect to it is refused.
func newClient(o Options, plain bool) *http.Client {
	return &http.Client{
		Transport: guard{plain: plain, next: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			// The digest is that of the bytes as received.
			DisableCompression: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// A guard checks each request, including redirects and those for a registry's token.
type guard struct {
	plain bool
	next  http.RoundTripper
}

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !(g.plain && r.URL.Scheme == "http" && isLoopback(r.URL.Hostname())) {
		return nil, fmt.Errorf("%s://%s is not encrypted", r.URL.Scheme, r.URL.Host)
	}
	return g.next.RoundTrip(r)
}

// fetchBundle downloads a bundle.
func fetchBundle(ctx context.Context, p parsed, o Options) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.place, nil)
	if err != nil {
		return nil, stopError(CodeSource, hintSpec, nil, "invalid address %s", p.shown)
	}
	response, err := newClient(o, request.URL.Scheme == "http").Do(request)
	if err != nil {
		return nil, notFetched(ctx, p, o, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, stopError(CodeFetch, hintFetch, nil, "%s returned status %d", p.shown, response.StatusCode)
	}
	if response.ContentLength > maxArchive {
		return nil, tooLarge(p.shown)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxArchive+1))
	if err != nil {
		return nil, notFetched(ctx, p, o, err)
	}
	if len(data) > maxArchive {
		return nil, tooLarge(p.shown)
	}
	return data, nil
}

// notFetched does not quote the error's URL, whose query may contain a credential.
func notFetched(ctx context.Context, p parsed, o Options, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return stopError(CodeFetch, hintFetch, nil, "%s was not received within %v", p.shown, o.Timeout)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return stopError(CodeFetch, hintFetch, err, "cannot fetch %s", p.shown)
}
