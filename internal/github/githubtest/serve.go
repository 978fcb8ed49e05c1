// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3filter"
)

const (
	jsonType = "application/json; charset=utf-8"
	// maxRequest is far above what any operation accepts.
	maxRequest = 16 << 20
	// graphQL is the operation of all requests to the GraphQL API.
	graphQL = "graphql"
)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, blobPath) {
		s.serveBlob(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return // the client went away
	}
	w.Header().Set("Date", s.now().Format(http.TimeFormat))
	r, c := s.route(r, body)
	answered := s.record(r, c.op, r.URL.Path, body)
	for _, h := range s.hooksFor(c.op) {
		h.f(r)
	}
	fault := s.faultFor(c.op, r)
	a := s.misanswer(c, fault)
	if a == nil {
		reset(w)
		return
	}
	answered(a.status)
	a.write(r.Context(), w, fault)
}

// misanswer is answer with a fault; nil resets the connection.
func (s *Server) misanswer(c *call, fault *Fault) *answer {
	if fault == nil {
		fault = &Fault{}
	}
	if a := fault.instead(s); a != nil || fault.Kind == ResetBefore {
		return a
	}
	a := s.answer(c, fault)
	switch fault.Kind {
	case ResetAfter:
		return nil
	case AnswerAfter:
		a = fault.answer(fault.status(http.StatusBadGateway), "Server Error")
	}
	return &a
}

// route finds the operation. The returned request has the path in the form of the
// description: without the prefix, and with the repository's name if a Link header
// used its number.
func (s *Server) route(r *http.Request, body []byte) (*http.Request, *call) {
	if r.URL.Path == s.graphQLPath() {
		return r, &call{op: graphQL, r: r, body: body}
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.URL.Path = s.byName(strings.TrimPrefix(r.URL.Path, s.options.Prefix))
	r.URL.RawPath = ""
	c := &call{r: r, body: body}
	if route, params, err := s.rules.router.FindRoute(r); err == nil {
		for name, value := range params { // the router leaves them encoded
			if params[name], err = url.PathUnescape(value); err != nil {
				params[name] = value
			}
		}
		c.op, c.params = route.Operation.OperationID, params
		c.in = &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	}
	return r, c
}

// byName rewrites /repositories/ID/… to /repos/OWNER/NAME/….
func (s *Server) byName(path string) string {
	rest, numbered := strings.CutPrefix(path, "/repositories/")
	if !numbered {
		return path
	}
	id, rest, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if strconv.FormatInt(r.ID, 10) == id {
			return "/repos/" + r.Name + "/" + rest
		}
	}
	return path
}

// answer handles one request and checks the request and the response.
func (s *Server) answer(c *call, fault *Fault) answer {
	if c.op == graphQL {
		return s.answerGraphQL(c)
	}
	op, implemented := operations[c.op]
	if !implemented {
		s.violate("route", c.r.Method+" "+c.r.URL.Path, "no operation that this fake serves")
		return plain(notFound)
	}
	ignored, refused := s.rules.checkRequest(c.in, c.body)
	for _, message := range ignored {
		s.violate("request", c.op, message)
	}
	if refused != nil {
		s.violate("request", c.op, brief(refused))
	}
	s.mu.Lock()
	end := s.steady()
	r, quota := s.work(op, c, refused)
	a := s.render(c, r, fault)
	if quota != nil && a.status == http.StatusNotModified { // it does not count
		limitHeaders(quota, s.options.Quota, c.token.used, c.token.reset())
	}
	end()
	s.mu.Unlock()
	for name, values := range quota {
		a.header[name] = values
	}
	if err := s.rules.checkResponse(c.in, a.status, a.header, a.body); err != nil && r.raw == nil {
		s.violate("response", c.op, brief(err))
	}
	return a
}

// work checks in GitHub's order: credentials, rate, rights, form, substance.
func (s *Server) work(op operation, c *call, malformed error) (reply, http.Header) {
	anonymous := &Token{}
	token := s.tokens[bearer(c.r)]
	if token == nil && c.r.Header.Get("Authorization") != "" {
		return refuse(http.StatusUnauthorized, "Bad credentials"), nil
	}
	c.token = token
	if owner := c.params["owner"]; owner != "" {
		name := strings.ToLower(owner + "/" + c.params["repo"])
		if s.former[name] {
			return s.moved(c), nil
		}
		if c.repo = s.repos[name]; c.repo == nil {
			return notFound, nil
		}
	}
	counted := token
	if counted == nil {
		counted = anonymous
	}
	quota, over := counted.count(s.options.Quota, s.options.Now(), c.op != "rate-limit/get")
	if token != nil && token.Scopes != "" {
		quota.Set("X-Oauth-Scopes", token.Scopes)
	}
	if over {
		return refuse(http.StatusForbidden, exhausted), quota
	}
	if no := s.authorize(op, c); no != nil {
		return *no, quota
	}
	if malformed != nil {
		return refuse(http.StatusUnprocessableEntity, "Invalid request.\n\n"+brief(malformed)), quota
	}
	c.token = counted
	return op.serve(s, c), quota
}

// moved redirects from a former name to the repository's number.
func (s *Server) moved(c *call) reply {
	status := http.StatusTemporaryRedirect
	if c.r.Method == http.MethodGet {
		status = http.StatusMovedPermanently
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/repos/"), "/"+c.params["repo"])
	to := fmt.Sprintf("%s/repositories/%d%s", s.URL, s.home.ID, rest)
	r := refuse(status, "Moved Permanently")
	r.body.(obj)["url"] = to
	r.header = http.Header{"Location": {to}}
	return r
}

// render completes a reply, cuts the page out of a list, and answers 304 to a
// client that has the current version.
func (s *Server) render(c *call, r reply, fault *Fault) answer {
	if r.listed {
		r = s.paged(c, r, fault)
	}
	a := plain(r)
	if r.raw == nil && r.body != nil {
		a.body = encode(s.rules.fill(c.in.Route.Operation, a.status, r.body, s.URL))
	}
	if a.status == http.StatusOK && c.r.Method == http.MethodGet {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(append([]byte(a.header.Get("Link")), a.body...)))
		a.header.Set("Etag", tag)
		if c.r.Header.Get("If-None-Match") == tag {
			c.token.refund()
			a.status, a.body = http.StatusNotModified, nil
			a.header.Del("Content-Type")
		}
	}
	return a
}
