// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A download has all parts in order, an error before the first is the answer, one after it cuts the connection off, and
// nothing is taken any more when the download has ended.
func TestSendParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts []string // "" is an error
		want  string
		code  int
		cut   bool
	}{
		"one":              {[]string{"a"}, "a", 200, false},
		"three":            {[]string{"a", "bb", "c"}, "abbc", 200, false},
		"none":             {[]string{""}, "", 403, false},
		"cut in the third": {[]string{"a", "b", ""}, "ab", 200, true},
	} {
		var taking atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			defer func() {
				if taking.Load() != 0 {
					t.Errorf("%s: a part is taken after the end", name)
				}
			}()
			err := sendParts(w, func(at int64) ([]byte, bool, error) {
				if taking.Add(1) > 1 {
					t.Errorf("%s: two parts are taken at once", name)
				}
				defer taking.Add(-1)
				i := int(at / partSize)
				if c.parts[i] == "" {
					return nil, false, errors.New("refused")
				}
				return []byte(c.parts[i]), i+1 < len(c.parts), nil
			})
			if err != nil {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		r, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r.Body)
		if r.Body.Close(); string(data) != c.want || r.StatusCode != c.code || (err != nil) != c.cut {
			t.Errorf("%s: %d %q, %v", name, r.StatusCode, data, err)
		}
		s.Close()
	}
}
