// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"slices"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

// Schema is the value of the "schema" field of what JSON returns.
const Schema = "fumehood.replay/v1"

// JSON returns o, and what of past it is not about, as one line. Nothing in it reaches a
// terminal or a runner's log reader as anything but text.
func (o Outcome) JSON(past Past) ([]byte, error) {
	data, err := json.Marshal(struct {
		Schema string `json:"schema"`
		Outcome
		Unverified []string `json:"unverified"` // files that nothing vouches for
		Left       []Left   `json:"left"`
	}{Schema, o, slices.Concat([]string{}, past.Unverified()), slices.Concat([]Left{}, past.Left)})
	if err != nil {
		return nil, err
	}
	return append(text.EscapeJSON(data), '\n'), nil
}
