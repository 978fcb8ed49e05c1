// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	githubdata "github.com/fumehood/fumehood/testdata/github"
)

// description is GitHub's description of its API.
type description struct {
	doc    *openapi3.T
	router routers.Router
}

// slashed finds the path parameters that may contain slashes, which OpenAPI 3.0
// cannot express.
var slashed = regexp.MustCompile(`"(/repos/[^"]*/)(contents/\{path|git/ref/\{ref|compare/\{basehead|branches/\{branch|commits/\{ref)\}"`)

// A deviation is a place where GitHub's responses differ from its description.
type deviation struct{ schema, property, reason string }

var deviations = []deviation{
	{"pull-request", "head.repo", "null when the fork was deleted, as webhook payloads and the older descriptions have it"},
	{"pull-request-simple", "head.repo", "as in pull-request"},
	{"pull-request-review-comment", "line", "null when the comment is outdated"},
	{"pull-request-review-comment", "position", "as line"},
}

// loadDescription reads the description once for all servers of a process.
var loadDescription = sync.OnceValues(func() (*description, error) { return readDescription(deviations) })

func readDescription(deviations []deviation) (*description, error) {
	raw := slashed.ReplaceAll(githubdata.OpenAPI, []byte(`"$1$2:.+}"`))
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot load the API description: %v", err)
	}
	doc.Servers = nil // any host
	for _, d := range deviations {
		if err := makeNullable(doc, d.schema, d.property); err != nil {
			return nil, err
		}
	}
	// GitHub's documentation has "created" as a range (">=T", "A..B"), as in its
	// web search; its description has a single date.
	doc.Components.Parameters["created"].Value.Schema.Value.Format = ""
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot route the API description: %v", err)
	}
	return &description{doc, router}, nil
}

// makeNullable changes a single property, not the schema that it shares.
func makeNullable(doc *openapi3.T, schema, property string) error {
	at := doc.Components.Schemas[schema]
	names := strings.Split(property, ".")
	for i, name := range names {
		if at == nil || at.Value.Properties[name] == nil {
			return fmt.Errorf("invalid deviation: %s has no %s", schema, property)
		}
		next := at.Value.Properties[name]
		if i == len(names)-1 {
			copied := *next.Value
			copied.Nullable = true
			at.Value.Properties[name] = &openapi3.SchemaRef{Value: &copied}
		}
		at = next
	}
	return nil
}

// checkRequest returns the parts of a request that GitHub would ignore, and those
// that it would refuse.
func (d *description) checkRequest(
	in *openapi3filter.RequestValidationInput, body []byte,
) (ignored []string, refused error) {
	in.Options = &openapi3filter.Options{
		MultiError: true, SkipSettingDefaults: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
	}
	refused = openapi3filter.ValidateRequest(in.Request.Context(), in)
	known := map[string]bool{}
	for _, p := range append(in.Route.PathItem.Parameters, in.Route.Operation.Parameters...) {
		known[p.Value.In+" "+p.Value.Name] = true
	}
	for name := range in.Request.URL.Query() {
		if !known["query "+name] {
			ignored = append(ignored, fmt.Sprintf("unknown query parameter %q", name))
		}
	}
	if want := in.Route.Operation.RequestBody; want != nil {
		if media := want.Value.Content.Get("application/json"); media != nil {
			ignored = append(ignored, unknownFields(media.Schema.Value, body)...)
		}
	} else if len(body) > 0 {
		ignored = append(ignored, "a body where none is read")
	}
	return ignored, refused
}

// unknownFields checks the fields of body and of the objects in it.
func unknownFields(schema *openapi3.Schema, body []byte) []string {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil
	}
	var unknown []string
	walkFields([]*openapi3.Schema{schema}, value, "", &unknown)
	return unknown
}

func walkFields(schemas []*openapi3.Schema, value any, at string, unknown *[]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			inner, known := findProperties(schemas, name)
			if !known {
				*unknown = append(*unknown, fmt.Sprintf("unknown body field %q", at+name))
			}
			walkFields(inner, field, at+name+".", unknown)
		}
	case []any:
		var items []*openapi3.Schema
		for _, s := range schemas {
			if s.Items != nil {
				items = append(items, s.Items.Value)
			}
		}
		for _, item := range value {
			walkFields(items, item, at, unknown)
		}
	}
}

// findProperties finds a field in any of the alternatives. If a schema does not list an
// object's fields, every field is known.
func findProperties(schemas []*openapi3.Schema, name string) (found []*openapi3.Schema, known bool) {
	said := false
	var look func(s *openapi3.Schema)
	look = func(s *openapi3.Schema) {
		said = said || len(s.Properties) > 0
		if p := s.Properties[name]; p != nil {
			found, known = append(found, p.Value), true
		}
		for _, list := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
			for _, alternative := range list {
				look(alternative.Value)
			}
		}
	}
	for _, s := range schemas {
		look(s)
	}
	return found, known || !said
}

// undescribed are statuses that GitHub returns for any operation, described or not.
var undescribed = []int{
	http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusNotModified, http.StatusUnauthorized,
	http.StatusForbidden, http.StatusNotFound,
	http.StatusUnprocessableEntity, http.StatusTooManyRequests,
}

func (d *description) checkResponse(
	in *openapi3filter.RequestValidationInput, status int, header http.Header, body []byte,
) error {
	if in.Route.Operation.Responses.Value(strconv.Itoa(status)) == nil {
		for _, s := range undescribed {
			if s == status {
				return nil
			}
		}
		return fmt.Errorf("status %d is not described", status)
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	out.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(context.Background(), out)
}

// shortenSchemaError cuts a kin-openapi message to one line without the schema's text.
func shortenSchemaError(err error) string {
	var many openapi3.MultiError
	if errors.As(err, &many) && len(many) > 0 {
		parts := make([]string, len(many))
		for i, e := range many {
			parts[i] = shortenSchemaError(e)
		}
		return strings.Join(parts, "; ")
	}
	text, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return strings.Join(strings.Fields(text), " ")
}

func encodeJSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("githubtest: internal error: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
