// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"os"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReadFile reads registries from the file that --registries names. Its error is a
// *proposal.StopError.
func ReadFile(path string) ([]Registry, error) {
	data, err := os.ReadFile(path)
	var all []Registry
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, &proposal.StopError{Code: "network.registries", Message: "cannot read the file of --registries", Hint: "leave it out; fumehood action writes it", Err: err}
	}
	return all, nil
}
