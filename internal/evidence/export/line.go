// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// EncodeLine returns d as one printable line of JSON, including the newline. If it is too
// long, it loses its input, then the grant and most of the texts; erased lists them.
func EncodeLine(d Decision) ([]byte, error) {
	line, err := encodeJSONLine(d)
	if err == nil && len(line) > MaxLine {
		d.Input, d.Masked, d.Erased = Input{}, nil, []string{"/input"}
		line, err = encodeJSONLine(d)
	}
	if err == nil && len(line) > MaxLine {
		d.Result, d.RuleLabels = reduceResult(d.Result), nil
		d.Erased = append(d.Erased, "/result/grant", "/result/reasons", "/result/rules")
		line, err = encodeJSONLine(d)
	}
	return line, err
}

// reduceResult returns r reduced to the minimum that gives the reason.
func reduceResult(r Result) Result {
	r.Grant, r.Rules = nil, r.Rules[:min(len(r.Rules), 8)]
	said := r.Reasons[:min(len(r.Reasons), 8)]
	r.Reasons = []proposal.Reason{}
	for _, x := range said {
		r.Reasons = append(r.Reasons, proposal.Reason{Rule: x.Rule, Effect: x.Effect, Message: x.Message,
			Command: x.Command, Observed: x.Observed, Revision: TruncateText(x.Revision, maxName)})
	}
	return r
}

func encodeJSONLine(d Decision) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return append(text.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), '\n'), nil
}
