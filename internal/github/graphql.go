// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// A user is an account in an answer of the GraphQL API.
type user struct {
	Login string `json:"login"`
	ID    int64  `json:"databaseId"`
}

// graphQLPath returns the address of the GraphQL API, relative to that of the REST API: beside it,
// on GHES beside its version.
func (c *Client) graphQLPath() string {
	if strings.HasSuffix(c.wire.base.Path, "/v3/") {
		return "../graphql"
	}
	return "graphql"
}

// queryGraphQL sends a document of the GraphQL API with its variables, and returns the data of the answer.
// document is constant: nothing is inserted into it.
func queryGraphQL[T any](ctx context.Context, p *retryState, document string, variables map[string]any) (T, error) {
	sent := struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables,omitempty"`
	}{document, variables}
	return retryRequest(ctx, p, func(ctx context.Context) (data T, err error) {
		req, err := p.c.gh.NewRequest(http.MethodPost, p.c.graphQLPath(), sent)
		if err != nil {
			return data, err
		}
		var answer struct {
			Data *T `json:"data"`
		}
		if _, err := p.c.gh.Do(ctx, req, &answer); err != nil {
			return data, err
		}
		if answer.Data == nil {
			return data, malformedError("a GraphQL answer without data")
		}
		return *answer.Data, nil
	})
}

// isGraphQL reports whether a request is one to the GraphQL API. No path of the REST API that is
// posted to ends like this.
func isGraphQL(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/graphql")
}

// graphQLKinds are the kinds of the types of errors.
var graphQLKinds = map[string]Kind{
	"FORBIDDEN": Forbidden, "INSUFFICIENT_SCOPES": Forbidden, "NOT_FOUND": NotFound, "RATE_LIMITED": RateLimited, "RATE_LIMIT": RateLimited,
	"SERVICE_UNAVAILABLE": Unavailable, "INTERNAL": Unavailable,
}

// graphQLRefusal returns the first error of an answer of the GraphQL API, which has the status 200,
// or nil.
func graphQLRefusal(resp *http.Response, body []byte) error {
	var said struct {
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return malformedError("%v", err)
	}
	if len(said.Errors) == 0 {
		return nil
	}
	first := said.Errors[0]
	e := &Error{Kind: graphQLKind(first.Type, strings.ToLower(first.Message)), Status: resp.StatusCode,
		Message: makePrintable(first.Message)}
	e.wait = serverWait(resp.Header, e.Kind)
	return e
}

// graphQLKind reads an error. Those of limits and of GitHub's own failures can be without a type.
func graphQLKind(kind, lower string) Kind {
	switch known := graphQLKinds[kind]; {
	case known != "":
		return known
	case strings.Contains(lower, "rate limit"), strings.Contains(lower, "submitted too quickly"):
		return RateLimited
	case strings.Contains(lower, "something went wrong"), strings.Contains(lower, "timeout"):
		return Unavailable
	}
	return Invalid
}
