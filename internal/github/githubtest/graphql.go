// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// A document is one that the fake serves: its text as tokens, and what answers it. Other documents
// are a violation, since the fake has no schema to check them with.
type document struct {
	tokens string
	serve  func(*Server, *call, json.RawMessage) answer
}

var documents = []document{
	{"{ viewer { login databaseId } }", (*Server).serveViewer},
	{"query ( $owner : String ! $name : String ! ) { viewer { login databaseId }" +
		" repository ( owner : $owner name : $name ) { defaultBranchRef { name target { oid } } } }", (*Server).serveStart},
	{"query ( $owner : String ! $name : String ! $number : Int ! $after : String ) { repository ( owner : $owner name : $name ) {" +
		" pullRequest ( number : $number ) { reviewThreads ( first : 100 after : $after ) { pageInfo { hasNextPage endCursor }" +
		" nodes { id isResolved resolvedBy { login databaseId } comments ( first : 1 ) { nodes { fullDatabaseId } } } } } } }", (*Server).serveThreads},
	{"mutation ( $id : ID ! ) { result : resolveReviewThread ( input : { threadId : $id } ) { thread { isResolved } } }", (*Server).resolveThread},
	{"mutation ( $id : ID ! ) { result : unresolveReviewThread ( input : { threadId : $id } ) { thread { isResolved } } }", (*Server).unresolveThread},
}

// graphQLToken is a name, a variable, a number or a mark. Commas are white space.
var graphQLToken = regexp.MustCompile(`\$?\w+|[^\s,]`)

func graphQLTokens(text string) string {
	return strings.Join(graphQLToken.FindAllString(text, -1), " ")
}

// graphQLPath is the path of the GraphQL API: without the version that a GHES has in its prefix.
func (s *Server) graphQLPath() string {
	return strings.TrimSuffix(s.options.Prefix, "/v3") + "/graphql"
}

// answerGraphQL answers one document. Refusals have the status 200, except for a wrong token.
func (s *Server) answerGraphQL(c *call) answer {
	var in struct {
		Query     string          `json:"query"`
		Variables json.RawMessage `json:"variables"`
	}
	if err := decodeStrictly(c.body, &in); err != nil || c.r.Method != http.MethodPost {
		s.addViolation("graphql", c.r.Method, fmt.Sprint("no request of GraphQL: ", err))
		return plainAnswer(errorReply(http.StatusBadRequest, "Problems parsing JSON"))
	}
	s.mu.Lock()
	c.token = s.tokens[requestToken(c.r)]
	s.mu.Unlock()
	if c.token == nil {
		return plainAnswer(errorReply(http.StatusUnauthorized, "Bad credentials"))
	}
	for _, d := range documents {
		if d.tokens == graphQLTokens(in.Query) {
			s.mu.Lock()
			defer s.mu.Unlock()
			defer s.holdRefs()()
			return d.serve(s, c, in.Variables)
		}
	}
	s.addViolation("graphql", c.r.Method, "no document that this fake serves: "+in.Query)
	return graphQLError("", "Parse error")
}

// decodeStrictly decodes one JSON object without other fields than into has.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("text after the object")
	}
	return nil
}

func graphQLData(data obj) answer { return plainAnswer(reply{body: obj{"data": data}}) }

// graphQLError is an answer with an error of a type; "" is an error of the document, without type.
func graphQLError(kind, message string) answer {
	e := obj{"message": message, "locations": []any{obj{"line": 1, "column": 1}}}
	if kind != "" {
		e["type"] = kind
	}
	return plainAnswer(reply{body: obj{"data": nil, "errors": []any{e}}})
}

// serveViewer answers who the token writes as, also for the token of an app.
func (s *Server) serveViewer(c *call, _ json.RawMessage) answer {
	u := s.userOf(c.token.Login)
	return graphQLData(obj{"viewer": obj{"login": u.Login, "databaseId": u.ID}})
}

// serveStart answers who the token writes as, and the default branch of a repository.
func (s *Server) serveStart(c *call, variables json.RawMessage) answer {
	var in struct{ Owner, Name string }
	if err := decodeStrictly(variables, &in); err != nil {
		return graphQLError("", "Variable was provided invalid value")
	}
	c.repo = s.repos[strings.ToLower(in.Owner+"/"+in.Name)]
	if c.repo == nil || !s.isGranted(operation{level: "read", scopes: []string{"contents"}}, c) {
		return graphQLError("NOT_FOUND",
			fmt.Sprintf("Could not resolve to a Repository with the name '%s/%s'.", in.Owner, in.Name))
	}
	var branch any // null without a commit
	if name := c.repo.defaultBranch(); c.repo.commitOfRef("heads/"+name) != "" {
		branch = obj{"name": name, "target": obj{"oid": c.repo.commitOfRef("heads/" + name)}}
	}
	u := s.userOf(c.token.Login)
	return graphQLData(obj{"viewer": obj{"login": u.Login, "databaseId": u.ID},
		"repository": obj{"defaultBranchRef": branch}})
}

// cursorPrefix begins the cursor after the n-th thread.
const cursorPrefix = "Y3Vyc29y"

// serveThreads lists threads. In this fake each comment begins one.
func (s *Server) serveThreads(c *call, variables json.RawMessage) answer {
	var in struct {
		Owner, Name string
		Number      int
		After       *string
	}
	if err := decodeStrictly(variables, &in); err != nil {
		return graphQLError("", "Variable was provided invalid value")
	}
	c.repo = s.repos[strings.ToLower(in.Owner+"/"+in.Name)]
	if c.repo == nil || !s.isGranted(operation{level: "read", scopes: []string{"pull_requests"}}, c) {
		return graphQLError("NOT_FOUND",
			fmt.Sprintf("Could not resolve to a Repository with the name '%s/%s'.", in.Owner, in.Name))
	}
	if c.repo.prs[in.Number] == nil {
		return graphQLError("NOT_FOUND",
			fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", in.Number))
	}
	from := 0
	if in.After != nil {
		var err error
		if from, err = strconv.Atoi(strings.TrimPrefix(*in.After, cursorPrefix)); err != nil || from < 0 {
			return graphQLError("INVALID_CURSOR_ARGUMENTS", "`"+*in.After+"` does not appear to be a valid cursor.")
		}
	}
	return graphQLData(obj{"repository": obj{"pullRequest": obj{"reviewThreads": s.threadPage(c.repo, in.Number,
		from)}}})
}

func (s *Server) threadPage(r *repository, number, from int) obj {
	nodes := []any{}
	for _, remark := range r.remarks {
		if remark.Number == number && !r.isPending(remark.Review) {
			nodes = append(nodes, s.threadShape(remark))
		}
	}
	to := min(from+100, len(nodes))
	return obj{"pageInfo": obj{"hasNextPage": to < len(nodes), "endCursor": fmt.Sprint(cursorPrefix, to)},
		"nodes": nodes[min(from, to):to]}
}

// threadShape names who resolved a thread only if that is a person, as the field's type is User.
func (s *Server) threadShape(c *ReviewComment) obj {
	var by any
	if u := s.userOf(c.ResolvedBy); c.ResolvedBy != "" && u.Type == "User" {
		by = obj{"login": u.Login, "databaseId": u.ID}
	}
	return obj{"id": threadID(c), "isResolved": c.ResolvedBy != "", "resolvedBy": by,
		"comments": obj{"nodes": []any{obj{"fullDatabaseId": strconv.FormatInt(c.ID, 10)}}}}
}

func threadID(c *ReviewComment) string { return fmt.Sprint("PRRT_", c.ID) }

func (s *Server) resolveThread(c *call, variables json.RawMessage) answer {
	return s.setThread(c, variables, c.token.Login)
}

func (s *Server) unresolveThread(c *call, variables json.RawMessage) answer {
	return s.setThread(c, variables, "")
}

// setThread resolves a thread by login, or unresolves it. The token of an app needs the right to
// write contents, too.
func (s *Server) setThread(c *call, variables json.RawMessage, login string) answer {
	var in struct{ ID string }
	if err := decodeStrictly(variables, &in); err != nil {
		return graphQLError("", "Variable was provided invalid value")
	}
	c.repo = s.home
	for _, remark := range s.home.remarks {
		if threadID(remark) != in.ID {
			continue
		}
		for _, scope := range []string{"pull_requests", "contents"} {
			if !s.isGranted(operation{level: "write", scopes: []string{scope}}, c) {
				return graphQLError("FORBIDDEN", "Resource not accessible by integration")
			}
		}
		remark.ResolvedBy = login
		return graphQLData(obj{"result": obj{"thread": obj{"isResolved": login != ""}}})
	}
	return graphQLError("NOT_FOUND", "Could not resolve to a node with the global id of '"+in.ID+"'")
}

// SetResolved resolves the thread of a comment as login would on the web page; "" unresolves it.
func (s *Server) SetResolved(comment int64, login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.home.remarks {
		if c.ID == comment {
			c.ResolvedBy = login
		}
	}
}
