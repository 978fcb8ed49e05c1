// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"encoding/json"
	"net/http"
	"regexp"
)

var viewerQuery = regexp.MustCompile(`^\s*(query\s*)?\{\s*viewer\s*\{\s*login\s+databaseId\s*\}\s*\}\s*$`)

// serveGraphQL answers the query for the token's account, which GitHub also answers for the
// token of an app.
func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request, sent []byte) {
	answered := s.record(r, "graphql", r.URL.Path, sent)
	var q struct {
		Query string `json:"query"`
	}
	if r.Method != http.MethodPost || json.Unmarshal(sent, &q) != nil || !viewerQuery.MatchString(q.Query) {
		s.violate("graphql", r.Method, "no query that this fake serves: "+q.Query)
	}
	status, body := http.StatusUnauthorized, obj{"message": "Bad credentials"}
	s.mu.Lock()
	if token := s.tokens[bearer(r)]; token != nil {
		u := s.user(token.Login)
		status, body = http.StatusOK, obj{"data": obj{"viewer": obj{"login": u.Login, "databaseId": u.ID}}}
	}
	s.mu.Unlock()
	answered(status)
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
