// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/localhttp"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// envdVersion is the version of E2B's daemon whose calls are served. The SDKs use what it has.
const envdVersion = "0.6.4"

// The bounds of what a client may attach to a sandbox.
const (
	maxEntries = 64
	maxText    = 16 << 10 // bytes of all names and values
)

// A newSandbox is the request for a sandbox. What is not listed is a wish.
type newSandbox struct {
	TemplateID string            `json:"templateID"`
	Metadata   map[string]string `json:"metadata"`
	EnvVars    map[string]string `json:"envVars"`
	Timeout    *int64            `json:"timeout"` // seconds
	Volumes    any               `json:"volumeMounts"`
	AutoPause  bool              `json:"autoPause"`       // when its time is over
	PauseKeeps *bool             `json:"autoPauseMemory"` // false: not the memory
	AutoResume any               `json:"autoResume"`      // by any request, if it is {"enabled": true}
	wishes     []string          // names of what is requested and not granted
	isPublic   bool              // requests for its ports need no token
}

// requestedAlways are options that describe every sandbox here, or that SDKs send without having been asked.
var requestedAlways = []string{"templateID", "metadata", "envVars", "timeout", "volumeMounts", "secure", "autoPause",
	"autoPauseMemory", "autoResume"}

const maxWishes = 10

// readNewSandbox reads the request for a sandbox. Options of SDKs that were written before or after this server are
// wishes: none of them is granted, and none of them is an error.
func readNewSandbox(data []byte) (in newSandbox, err error) {
	if len(data) == 0 {
		return in, nil
	}
	var fields map[string]json.RawMessage
	if err = strictjson.CheckNames(data); err == nil {
		err = errors.Join(json.Unmarshal(data, &fields), json.Unmarshal(data, &in))
	}
	if err != nil {
		return in, refuseRequest(invalidArgument, "invalid request: %v", err)
	}
	var network struct {
		AllowPublicTraffic bool `json:"allowPublicTraffic"`
	}
	in.isPublic = json.Unmarshal(fields["network"], &network) == nil && network.AllowPublicTraffic
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		isSet := value != "false" && value != "null"
		if isSet && !slices.Contains(requestedAlways, name) && len(in.wishes) < maxWishes {
			in.wishes = append(in.wishes, text.Inline(name, 40))
		}
	}
	if in.PauseKeeps != nil && !*in.PauseKeeps {
		in.wishes = append(in.wishes, "autoPauseMemory false")
	}
	return in, nil
}

// resumesItself reports whether any request to the paused sandbox resumes it.
func (n newSandbox) resumesItself() bool {
	how, _ := n.AutoResume.(map[string]any)
	return n.AutoPause && how["enabled"] == true
}

// describeClient names the client in the report.
func (n newSandbox) describeClient() string {
	if len(n.wishes) == 0 {
		return "E2B client"
	}
	return "E2B client; requested and not granted: " + strings.Join(n.wishes, ", ")
}

// templates are the names that the SDKs use if their caller names none.
var templates = []string{"", "base", "code-interpreter-v1", "code-interpreter-beta", "mcp-gateway"}

// refuseUnsupported refuses what a sandbox here cannot be. saved says that the template is a snapshot.
func (n newSandbox) refuseUnsupported(saved bool) error {
	switch {
	case !saved && !slices.Contains(templates, n.TemplateID):
		return refuseRequest(notFound, "there is no template %q: sandboxes have the tools of this host; "+
			"use base, code-interpreter-v1 or the id of a snapshot of this key", n.TemplateID)
	case n.Volumes != nil:
		return refuseRequest(unimplemented, "volumes are not supported")
	}
	if err := checkEntriesSize("metadata", n.Metadata); err != nil {
		return err
	}
	return checkEntriesSize("envs", n.EnvVars)
}

func checkEntriesSize(what string, entries map[string]string) error {
	size := 0
	for name, value := range entries {
		size += len(name) + len(value)
	}
	if len(entries) > maxEntries || size > maxText {
		return refuseRequest(invalidArgument, "%s: more than %d entries or %d bytes", what, maxEntries, maxText)
	}
	return nil
}

func parseSeconds(n *int64, orElse time.Duration) (time.Duration, error) {
	if n == nil {
		return orElse, nil
	}
	if *n < 0 || *n > int64(24*365*time.Hour/time.Second) {
		return 0, refuseRequest(invalidArgument, "timeout: %d seconds", *n)
	}
	return time.Duration(*n) * time.Second, nil
}

// serveAPI serves a request with a key. A nil answer has no body.
func (s *Server) serveAPI(
	status int, f func(w http.ResponseWriter, r *http.Request, user localhttp.User) (any, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := s.keys.Find(r.Header.Get("X-API-KEY"))
		if user.Name == "" {
			failJSON(w, refuseRequest(unauthenticated, "the API key is missing or unknown"))
			return
		}
		out, err := f(w, r, user)
		if err != nil {
			failJSON(w, err)
			return
		}
		sendAnswer(w, status, out)
	}
}

// apiOf is serveAPI for a request about one sandbox, with a body.
func apiOf[In any](
	s *Server, status int, f func(ctx context.Context, b *sandbox, in In) (any, error),
) http.HandlerFunc {
	return s.serveAPI(status, func(w http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
		data, err := readBody(w, r, maxAPI)
		if err != nil {
			return nil, err
		}
		in, err := decodeStrictly[In](data)
		if err != nil {
			return nil, err
		}
		b, err := s.findOwned(r.PathValue("id"), user.Name)
		if err != nil {
			return nil, err
		}
		return f(r.Context(), b, in)
	})
}

// findOwned returns a sandbox of user. Those of others are not there.
func (s *Server) findOwned(id, user string) (*sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sandboxes[id]
	if b == nil || b.user != user {
		return nil, refuseRequest(notFound, "there is no sandbox %q", id)
	}
	return b, nil
}

type noInput struct{}

func (s *Server) apiRoutes(mux *http.ServeMux) {
	const one = "/sandboxes/{id}"
	for _, version := range []string{"", "/v2"} { // the SDKs' releases differ
		mux.HandleFunc("POST "+version+"/sandboxes", s.serveAPI(http.StatusCreated, s.apiCreate))
		mux.HandleFunc("GET "+version+"/sandboxes", s.serveAPI(http.StatusOK, s.apiList))
		mux.HandleFunc("POST "+version+one+"/connect", apiOf(s, http.StatusOK, s.apiConnect))
	}
	mux.HandleFunc("GET "+one, apiOf(s, http.StatusOK,
		func(_ context.Context, b *sandbox, _ noInput) (any, error) { return b.publicInfo(), nil }))
	mux.HandleFunc("DELETE "+one, apiOf(s, http.StatusNoContent,
		func(_ context.Context, b *sandbox, _ noInput) (any, error) {
			s.removeSandbox(b)
			return nil, nil
		}))
	mux.HandleFunc("GET "+one+"/metrics", s.serveAPI(http.StatusOK, s.apiMetrics))
	mux.HandleFunc("POST "+one+"/timeout", apiOf(s, http.StatusNoContent, apiTimeout))
	mux.HandleFunc("POST "+one+"/pause", apiOf(s, http.StatusNoContent, apiPause))
	mux.HandleFunc("POST "+one+"/resume", apiOf(s, http.StatusCreated, s.apiResume))
	mux.HandleFunc("POST "+one+"/snapshots", apiOf(s, http.StatusCreated, s.apiSnapshot))
	mux.HandleFunc("POST "+one+"/fork", apiOf(s, http.StatusCreated, s.apiFork))
	mux.HandleFunc("GET /snapshots", s.serveAPI(http.StatusOK, s.apiListSnapshots))
	mux.HandleFunc("DELETE /templates/{id}", s.serveAPI(http.StatusNoContent, s.apiDeleteTemplate))
	for _, what := range []string{"network", "logs", "refreshes"} {
		mux.HandleFunc(one+"/"+what, s.serveAPI(0,
			func(http.ResponseWriter, *http.Request, localhttp.User) (any, error) {
				return nil, refuseRequest(unimplemented,
					"%s is not supported: a sandbox is one, on this host, without a network", what)
			}))
	}
	for _, what := range []string{"/templates/", "/v2/templates/", "/v3/templates", "/volumes",
		"/volumes/", "/secrets", "/secrets/"} {
		mux.HandleFunc(what, s.serveAPI(0, func(_ http.ResponseWriter, r *http.Request, _ localhttp.User) (any, error) {
			return nil, refuseRequest(unimplemented,
				"%s is not supported: sandboxes have the tools of this host and the workspace of the server", r.URL.Path)
		}))
	}
}

func (s *Server) apiCreate(w http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
	data, err := readBody(w, r, maxAPI)
	if err != nil {
		return nil, err
	}
	in, err := readNewSandbox(data)
	from := s.findSnapshot(in.TemplateID, user)
	if err == nil {
		err = in.refuseUnsupported(from != nil)
	}
	if err != nil {
		return nil, err
	}
	timeout, err := s.readTimeout(in.Timeout)
	if err != nil {
		return nil, err
	}
	b, err := s.createSandbox(r.Context(), user, in, timeout, from)
	if err != nil {
		return nil, err
	}
	return b.ownerInfo(), nil
}

// ownerInfo is what only the sandbox's owner gets.
func (b *sandbox) ownerInfo() map[string]any {
	var domain any // of the host names of its ports
	if len(b.server.o.Ports) > 0 {
		domain = "localhost" + b.server.suffix
	}
	return map[string]any{"sandboxID": b.id, "templateID": b.about.TemplateID, "clientID": "fumehood",
		"envdVersion":     envdVersion,
		"envdAccessToken": b.access, "trafficAccessToken": b.traffic, "domain": domain}
}

func (b *sandbox) publicInfo() map[string]any {
	state, onTimeout := b.state(), "kill"
	if b.about.AutoPause {
		onTimeout = "pause"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	metadata := b.about.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return map[string]any{"sandboxID": b.id, "templateID": b.about.TemplateID, "clientID": "fumehood",
		"envdVersion": envdVersion,
		"metadata":    metadata, "state": state, "startedAt": b.started.UTC(), "endAt": b.end.UTC(), "cpuCount": int(b.limits.CPUs),
		"memoryMB": int64(b.limits.Memory / proposal.MiB), "diskSizeMB": int64(b.limits.Disk / proposal.MiB),
		"allowInternetAccess": false, "lifecycle": map[string]any{"onTimeout": onTimeout, "autoResume": b.about.resumesItself()}}
}

type timeoutRequest struct {
	Timeout *int64 `json:"timeout"`
	Memory  *bool  `json:"memory"` // of connect: false starts a paused sandbox again
}

func apiTimeout(_ context.Context, b *sandbox, in timeoutRequest) (any, error) {
	if in.Timeout == nil || in.Memory != nil {
		return nil, refuseRequest(invalidArgument, "timeout: missing")
	}
	timeout, err := parseSeconds(in.Timeout, 0)
	if err != nil {
		return nil, err
	}
	return nil, b.extendTimeout(timeout, false)
}

// apiConnect resumes a paused sandbox, and never makes one end earlier.
func (s *Server) apiConnect(ctx context.Context, b *sandbox, in timeoutRequest) (any, error) {
	if err := refuseWithoutMemory("onResume", in.Memory); err != nil {
		return nil, err
	}
	timeout, err := parseSeconds(in.Timeout, min(s.o.Timeout, b.timeLeft()))
	resumed := false
	if err == nil {
		resumed, err = b.resume(ctx, timeout)
	}
	if err == nil && !resumed {
		err = b.extendTimeout(timeout, true)
	}
	if err != nil {
		return nil, err
	}
	return b.ownerInfo(), nil
}

const maxPage = 100

// apiList lists the sandboxes of user, the newest first.
func (s *Server) apiList(w http.ResponseWriter, r *http.Request, user localhttp.User) (any, error) {
	q := r.URL.Query()
	wanted, err := readFilter(q)
	if err != nil {
		return nil, err
	}
	limit := maxPage
	if given := q.Get("limit"); given != "" {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > maxPage {
			return nil, refuseRequest(invalidArgument, "limit: must be from 1 to %d", maxPage)
		}
	}
	var found []*sandbox
	s.mu.Lock()
	for _, b := range s.sandboxes {
		if b.user == user.Name && wanted(b) {
			found = append(found, b)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(found, func(a, b *sandbox) int { return cmp.Compare(b.sortKey(), a.sortKey()) })
	if q.Get("order") == "asc" {
		slices.Reverse(found)
	}
	if after := q.Get("nextToken"); after != "" {
		at := slices.IndexFunc(found, func(b *sandbox) bool {
			return b.sortKey() > after == (q.Get("order") == "asc") &&
				b.sortKey() != after
		})
		found = found[max(at, 0):]
		if at < 0 {
			found = nil
		}
	}
	if len(found) > limit {
		found = found[:limit]
		w.Header().Set("X-Next-Token", found[limit-1].sortKey())
	}
	page := []any{}
	for _, b := range found {
		page = append(page, b.publicInfo())
	}
	return page, nil
}

// sortKey is b's place in the order of all sandboxes.
func (b *sandbox) sortKey() string { return fmt.Sprintf("%020d-%s", b.started.UnixNano(), b.id) }

// readFilter returns which sandboxes a list has.
func readFilter(q url.Values) (func(*sandbox) bool, error) {
	metadata, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return nil, refuseRequest(invalidArgument, "metadata: not a query string")
	}
	var after time.Time
	if given := q.Get("startedAfter"); given != "" {
		if after, err = time.Parse(time.RFC3339, given); err != nil {
			return nil, refuseRequest(invalidArgument, "startedAfter: not a time")
		}
	}
	state, template := q.Get("state"), q.Get("template")
	return func(b *sandbox) bool {
		for name, values := range metadata { // the SDK escapes names and values once more
			name, err := url.PathUnescape(name)
			value, err2 := url.PathUnescape(values[0])
			if got, there := b.about.Metadata[name]; err != nil || err2 != nil || !there || got != value {
				return false
			}
		}
		return (state == "" || slices.Contains(strings.Split(state, ","), b.state())) &&
			(template == "" || template == b.about.TemplateID) && b.started.After(after)
	}, nil
}
