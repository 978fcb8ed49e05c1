// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// threadsJSON is a page of threads: their ids, and the cursor of the next page if there is one.
func threadsJSON(next string, ids ...int) string {
	var nodes []string
	for _, id := range ids {
		nodes = append(nodes, fmt.Sprintf(`{"id":"T%d","isResolved":true,"resolvedBy":{"login":"mona","databaseId":7},"comments":{"nodes":[{"fullDatabaseId":"%d"}]}}`, id, 3_000_000_000+id))
	}
	return fmt.Sprintf(`{"data":{"repository":{"pullRequest":{"reviewThreads":{"pageInfo":{"hasNextPage":%v,"endCursor":%q},"nodes":[%s]}}}}}`, next != "", next, strings.Join(nodes, ","))
}

const resolvedJSON = `{"data":{"result":{"thread":{"isResolved":true}}}}`

func TestReviewThreads(t *testing.T) {
	s := play(t, say(200, threadsJSON("after 2", 1, 2)), say(200, threadsJSON("", 2, 3)))
	c, _ := client(t, s.URL+"/api/v3")
	got, err := c.ReviewThreads(t.Context(), 2)
	mona := Author{Login: "mona", ID: 7}
	want := []ReviewThread{{"T1", 3_000_000_001, true, mona}, {"T2", 3_000_000_002, true, mona}, {"T3", 3_000_000_003, true, mona}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for i, r := range s.requests() {
		var sent struct {
			Query     string
			Variables map[string]any
		}
		if err := json.Unmarshal([]byte(s.bodies()[i]), &sent); err != nil || r.URL.Path != "/api/graphql" || r.Header.Get("Authorization") != "Bearer "+testToken || sent.Query != threadsQuery {
			t.Errorf("%s, %v, %v", r.URL.Path, sent, err)
		}
		if v := sent.Variables; v["owner"] != "Codertocat" || v["name"] != "Hello-World" || v["number"] != 2.0 || (v["after"] != nil) != (i == 1) {
			t.Errorf("variables %v", v)
		}
	}
}

// A list of threads without end, with pages of nothing, or that is not there, is an error.
func TestReviewThreadsWithoutEnd(t *testing.T) {
	ids := make([]int, 100)
	for page, most := range map[string]int{`{"data":{"repository":null}}`: 1, `{"data":{"repository":{"pullRequest":{"reviewThreads":null}}}}`: 1, threadsJSON("more"): 1, threadsJSON("more", ids...): maxItems / 100} {
		s := play(t, say(200, page))
		c, _ := client(t, s.URL)
		if _, err := c.ReviewThreads(t.Context(), 2); KindOf(err) != Malformed || len(s.requests()) != most {
			t.Errorf("%v after %d requests", err, len(s.requests()))
		}
	}
}

// An error of the GraphQL API has the status 200 and is read as other errors are, with the same
// repetitions and waits.
func TestGraphQLErrors(t *testing.T) {
	failed := func(kind, message string) string {
		return fmt.Sprintf(`{"data":{"result":null},"errors":[{"type":%q,"path":["result"],"message":%q}]}`, kind, message)
	}
	for name, test := range map[string]struct {
		first    step
		kind     Kind // if first repeats
		requests int
		wait     time.Duration // before the second request
	}{
		"forbidden":     {say(200, failed("FORBIDDEN", "Resource not accessible by integration")), Forbidden, 1, 0},
		"scopes":        {say(200, failed("INSUFFICIENT_SCOPES", "no")), Forbidden, 1, 0},
		"not found":     {say(200, failed("NOT_FOUND", "Could not resolve to a node")), NotFound, 1, 0},
		"schema":        {say(200, failed("", "Field 'x' doesn't exist on type 'Y'")), Invalid, 1, 0},
		"unprocessable": {say(200, failed("UNPROCESSABLE", "no")), Invalid, 1, 0},
		"limit":         {say(200, failed("RATE_LIMITED", "API rate limit exceeded"), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(testTime.Unix()+9)), RateLimited, 10, 10 * time.Second},
		"secondary":     {say(200, failed("", "You have exceeded a secondary rate limit."), "Retry-After", "7"), RateLimited, 10, 7 * time.Second},
		"hour":          {say(200, failed("RATE_LIMITED", "no"), "Retry-After", "3600"), RateLimited, 1, 0},
		"broken":        {say(200, failed("", "Something went wrong while executing your query.")), Uncertain, 5, time.Second},
		"bad gateway":   {say(502, ""), Uncertain, 5, time.Second},
		"hang up":       {hangUp, Uncertain, 5, time.Second},
		"cut":           {cutOff(200, resolvedJSON), Uncertain, 5, time.Second},
		"no data":       {say(200, `{"data":null}`), Uncertain, 3, time.Second},
		"no object":     {say(200, `[]`), Uncertain, 3, time.Second},
		"errors":        {say(200, `{"errors":7}`), Uncertain, 3, time.Second},
		"unchanged":     {say(200, `{"data":{"result":{"thread":{"isResolved":false}}}}`), Malformed, 1, 0},
		"half":          {say(200, `{"data":{"result":null}}`), Malformed, 1, 0},
		"no server":     {say(404, `{"message":"Not Found"}`), NotFound, 1, 0},
		"token":         {say(401, `{"message":"Bad credentials"}`), Unauthorized, 1, 0},
	} {
		s := play(t, test.first)
		c, k := client(t, s.URL)
		err := c.ResolveThread(t.Context(), "T1", true)
		if KindOf(err) != test.kind || len(s.requests()) != test.requests || strings.Contains(fmt.Sprint(err), testToken) {
			t.Errorf("%s: %v after %d requests", name, err, len(s.requests()))
		}
		if test.wait > 0 && (len(k.sleeps) == 0 || k.sleeps[0] < test.wait/2 || k.sleeps[0] > test.wait*3/2) {
			t.Errorf("%s: waited %v", name, k.sleeps)
		}
		s = play(t, test.first, say(200, resolvedJSON))
		c, _ = client(t, s.URL)
		if err := c.ResolveThread(t.Context(), "T1", true); (err == nil) != (test.requests > 1) {
			t.Errorf("%s once: %v", name, err)
		}
	}
}

// Requests to the GraphQL API are bounded and follow no redirect to elsewhere or of another method.
func TestGraphQLBounds(t *testing.T) {
	elsewhere := play(t, say(200, resolvedJSON))
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := play(t, say(status, "", "Location", elsewhere.URL+"/graphql"))
		c, _ := client(t, s.URL)
		if err := c.ResolveThread(t.Context(), "T1", true); KindOf(err) != Moved || len(s.requests()) != 1 {
			t.Errorf("%d: %v", status, err)
		}
	}
	if len(elsewhere.requests()) != 0 {
		t.Error("a request followed a redirect")
	}
	s := play(t, say(200, `{"data":"`+strings.Repeat("x", maxBody)+`"}`))
	c, _ := client(t, s.URL)
	if _, err := c.ReviewThreads(t.Context(), 2); KindOf(err) != Malformed {
		t.Errorf("a large answer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = play(t, func(http.ResponseWriter, *http.Request) { cancel() }, say(200, resolvedJSON))
	c, _ = client(t, s.URL)
	if err := c.ResolveThread(ctx, "T1", true); err == nil || len(s.requests()) != 1 {
		t.Errorf("canceled: %v", err)
	}
}

// What a thread is called is a variable, whatever is in it.
func TestThreadIsVariable(t *testing.T) {
	s := play(t, say(200, `{"data":{"result":{"thread":{"isResolved":false}}}}`))
	c, _ := client(t, s.URL)
	id := `"}) { thread { id } } mergePullRequest(input: {pullRequestId: "x` + "\n\u2028"
	if err := c.ResolveThread(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	if err := json.Unmarshal([]byte(s.bodies()[0]), &sent); err != nil || sent["query"] != unresolveMutation || sent["variables"].(map[string]any)["id"] != id {
		t.Errorf("%v, %v", sent, err)
	}
}
