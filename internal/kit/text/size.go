// SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"regexp"
	"strconv"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxBytes is the largest size that ParseBytes reads.
const maxBytes = 1 << 40

var bytesText = regexp.MustCompile(`^([1-9][0-9]{0,12}) ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$`)

var byteUnits = map[string]int64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// ParseBytes reads a whole number of bytes from 1 to MaxBytes, with or without a unit:
// "512MiB", "2 GB", "4096". The error continues a sentence about the text.
func ParseBytes(text string) (proposal.Bytes, error) {
	m := bytesText.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New(`is not a size such as "512MiB"`)
	}
	unit := byteUnits[m[2]]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > maxBytes/unit {
		return 0, errors.New("is more than 1TiB")
	}
	return proposal.Bytes(n * unit), nil
}
