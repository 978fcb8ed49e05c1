// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Header is sent with each request. Its value is that of an environment variable,
// which is never shown or logged.
type Header struct{ Name, Variable string }

var (
	headerName   = pattern.New(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)
	variableName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,200}$`)
	headerValue  = pattern.New(`^[ -~]+$`)
)

// ours are the headers that HTTP and OTLP set themselves.
var ours = []string{"Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection",
	"Te", "Trailer", "Upgrade", "Expect", "Accept-Encoding"}

// ParseHeader reads NAME=VARIABLE.
func ParseHeader(s string) (Header, error) {
	name, variable, found := strings.Cut(s, "=")
	h := Header{http.CanonicalHeaderKey(name), variable}
	if !found || !headerName.MatchString(name) {
		return h, wrongHeader("a header is written NAME=VARIABLE") // s may hold a secret
	}
	if !variableName.MatchString(variable) {
		return h, wrongHeader(fmt.Sprintf("what follows %s= is not the name of a variable", text.Inline(name, 100)))
	}
	for _, own := range ours {
		if h.Name == own {
			return h, wrongHeader(h.Name + " is set by fumehood itself")
		}
	}
	return h, nil
}

func wrongHeader(why string) error {
	return &proposal.StopError{Code: "otlp.header", Message: why,
		Hint: "name the environment variable that holds the value, never the value: --otlp-header Authorization=OTLP_AUTHORIZATION"}
}

// readHeaders reads the variables. Messages do not name them, because a user may have
// written a secret in place of a name. All must be set: without one, the collector
// would refuse every request.
func readHeaders(headers []Header, getenv func(string) string) (http.Header, error) {
	set := http.Header{}
	for _, h := range headers {
		value := getenv(h.Variable)
		if value == "" {
			return nil, &proposal.StopError{Code: Failed,
				Message: "the variable for the header " + h.Name + " is empty or not set",
				Hint:    "send from the report job: a workflow started by a fork's pull request has no secrets"}
		}
		if !headerValue.MatchString(value) {
			return nil, &proposal.StopError{Code: Failed,
				Message: "the variable for the header " + h.Name +
					" contains a newline or another character that a header cannot have"}
		}
		set.Add(h.Name, value)
	}
	return set, nil
}
