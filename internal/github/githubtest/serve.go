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
	r, c := s.findOperation(r, body)
	answered := s.recordRequest(r, c.op, r.URL.Path, body)
	for _, h := range s.hooksFor(c.op) {
		h.f(r)
	}
	fault := s.faultFor(c.op, r)
	a := s.answerWithFault(c, fault)
	if a == nil {
		resetConnection(w)
		return
	}
	answered(a.status)
	a.writeDelayed(r.Context(), w, fault)
}

// answerWithFault is answerRequest with a fault; nil resets the connection.
func (s *Server) answerWithFault(c *call, fault *Fault) *answer {
	if fault == nil {
		fault = &Fault{}
	}
	if a := fault.replaceAnswer(s); a != nil || fault.Kind == ResetBefore {
		return a
	}
	a := s.answerRequest(c, fault)
	switch fault.Kind {
	case ResetAfter:
		return nil
	case AnswerAfter:
		a = fault.errorAnswer(fault.statusOr(http.StatusBadGateway), "Server Error")
	}
	return &a
}

// findOperation finds the operation. The returned request has the path in the form of the
// description: without the prefix, and with the repository's name if a Link header
// used its number.
func (s *Server) findOperation(r *http.Request, body []byte) (*http.Request, *call) {
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

// answerRequest handles one request and checks the request and the response.
func (s *Server) answerRequest(c *call, fault *Fault) answer {
	if c.op == graphQL {
		return s.answerGraphQL(c)
	}
	op, implemented := operations[c.op]
	if !implemented {
		s.addViolation("route", c.r.Method+" "+c.r.URL.Path, "no operation that this fake serves")
		return plainAnswer(notFound)
	}
	ignored, refused := s.rules.checkRequest(c.in, c.body)
	for _, message := range ignored {
		s.addViolation("request", c.op, message)
	}
	if refused != nil {
		s.addViolation("request", c.op, shortenSchemaError(refused))
	}
	s.mu.Lock()
	end := s.holdRefs()
	r, quota := s.checkAndHandle(op, c, refused)
	a := s.renderReply(c, r, fault)
	if quota != nil && a.status == http.StatusNotModified { // it does not count
		limitHeaders(quota, s.options.Quota, c.token.used, c.token.resetTime())
	}
	end()
	s.mu.Unlock()
	for name, values := range quota {
		a.header[name] = values
	}
	if err := s.rules.checkResponse(c.in, a.status, a.header, a.body); err != nil && r.raw == nil {
		s.addViolation("response", c.op, shortenSchemaError(err))
	}
	return a
}

// checkAndHandle checks in GitHub's order: credentials, rate, rights, form, substance.
func (s *Server) checkAndHandle(op operation, c *call, malformed error) (reply, http.Header) {
	anonymous := &Token{}
	token := s.tokens[requestToken(c.r)]
	if token == nil && c.r.Header.Get("Authorization") != "" {
		return errorReply(http.StatusUnauthorized, "Bad credentials"), nil
	}
	c.token = token
	if owner := c.params["owner"]; owner != "" {
		name := strings.ToLower(owner + "/" + c.params["repo"])
		if s.former[name] {
			return s.redirectToNumber(c), nil
		}
		if c.repo = s.repos[name]; c.repo == nil {
			return notFound, nil
		}
	}
	counted := token
	if counted == nil {
		counted = anonymous
	}
	quota, over := counted.countRequest(s.options.Quota, s.options.Now(), c.op != "rate-limit/get")
	if token != nil && token.Scopes != "" {
		quota.Set("X-Oauth-Scopes", token.Scopes)
	}
	if over {
		return errorReply(http.StatusForbidden, exhausted), quota
	}
	if no := s.refuseUnauthorized(op, c); no != nil {
		return *no, quota
	}
	if malformed != nil {
		return errorReply(http.StatusUnprocessableEntity, "Invalid request.\n\n"+shortenSchemaError(malformed)), quota
	}
	c.token = counted
	return op.serve(s, c), quota
}

// redirectToNumber redirects from a former name to the repository's number.
func (s *Server) redirectToNumber(c *call) reply {
	status := http.StatusTemporaryRedirect
	if c.r.Method == http.MethodGet {
		status = http.StatusMovedPermanently
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/repos/"), "/"+c.params["repo"])
	to := fmt.Sprintf("%s/repositories/%d%s", s.URL, s.home.ID, rest)
	r := errorReply(status, "Moved Permanently")
	r.body.(obj)["url"] = to
	r.header = http.Header{"Location": {to}}
	return r
}

// renderReply completes a reply, cuts the page out of a list, and answers 304 to a
// client that has the current version.
func (s *Server) renderReply(c *call, r reply, fault *Fault) answer {
	if r.listed {
		r = s.cutPage(c, r, fault)
	}
	a := plainAnswer(r)
	if r.raw == nil && r.body != nil {
		a.body = encodeJSON(s.rules.fillResponse(c.in.Route.Operation, a.status, r.body, s.URL))
	}
	if a.status == http.StatusOK && c.r.Method == http.MethodGet {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(append([]byte(a.header.Get("Link")), a.body...)))
		a.header.Set("Etag", tag)
		if c.r.Header.Get("If-None-Match") == tag {
			c.token.refundRequest()
			a.status, a.body = http.StatusNotModified, nil
			a.header.Del("Content-Type")
		}
	}
	return a
}
