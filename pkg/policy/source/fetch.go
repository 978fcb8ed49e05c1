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
	hintFetch    = "can the address be reached from here, and does it answer without a password?"
)

// client asks servers. Plain http goes to loopback only, and only where the spec says
// so: no redirect leads to it.
func client(o Options, plain bool) *http.Client {
	return &http.Client{
		Transport: guard{plain: plain, next: &http.Transport{
			Proxy:           http.ProxyFromEnvironment,
			TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			// The bytes are what the digest is of.
			DisableCompression: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// A guard looks at each request, redirected ones and those for a registry's token too.
type guard struct {
	plain bool
	next  http.RoundTripper
}

func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !(g.plain && r.URL.Scheme == "http" && loopback(r.URL.Hostname())) {
		return nil, fmt.Errorf("%s://%s is not encrypted", r.URL.Scheme, r.URL.Host)
	}
	return g.next.RoundTrip(r)
}

// fetch gets a bundle's file.
func fetch(ctx context.Context, p parsed, o Options) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.place, nil)
	if err != nil {
		return nil, stop(CodeSource, hintSpec, nil, "the address %s cannot be used", p.shown)
	}
	response, err := client(o, request.URL.Scheme == "http").Do(request)
	if err != nil {
		return nil, notFetched(ctx, p, o, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, stop(CodeFetch, hintFetch, nil, "%s answered %d", p.shown, response.StatusCode)
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

// notFetched does not quote the error's address, whose query may hold a credential.
func notFetched(ctx context.Context, p parsed, o Options, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return stop(CodeFetch, hintFetch, nil, "%s did not come within %v", p.shown, o.Timeout)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return stop(CodeFetch, hintFetch, err, "cannot fetch %s", p.shown)
}
