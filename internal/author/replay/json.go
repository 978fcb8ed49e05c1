// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// Schema is the value of the field "schema" in the result of JSON.
const Schema = "fumehood.replay/v1"

// JSON returns o, and the parts of past that were left out, as one line. It is safe
// to print on a terminal or in a runner's log.
func (o Outcome) JSON(past Past) ([]byte, error) {
	data, err := json.Marshal(struct {
		Schema string `json:"schema"`
		Outcome
		Unverified []string `json:"unverified"` // files without a verified signature
		Left       []Left   `json:"left"`
	}{Schema, o, slices.Concat([]string{}, past.UnverifiedFiles()), slices.Concat([]Left{}, past.Left)})
	if err != nil {
		return nil, err
	}
	return append(text.EscapeJSON(data), '\n'), nil
}
