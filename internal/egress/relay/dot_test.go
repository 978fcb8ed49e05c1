// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"net/http"
	"testing"
)

// A plain dot in a path, as apt requests it of flat repositories, is removed before policy
// is asked; nothing that could be a dot for some servers only is sent.
func TestDot(t *testing.T) {
	for path, want := range map[string]string{
		"/debian/./Packages":    "/debian/Packages",
		"/./a/././b%2Fc?x=/./y": "/a/b%2Fc?x=/./y",
		"/a//./b":               "/a//b",
		"/a/.":                  "",
		"/a/%2e/b":              "",
		"/a/./%2e/b":            "",
		"/a/.;x/b":              "",
		"/a/./../b":             "",
		"/a/%252e/./b":          "",
	} {
		w := newWorld(t, 443, intercept)
		got := ""
		w.https(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI }))
		w.start()
		r, err := http.NewRequest("GET", "https://allowed.example"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := w.client(false).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got != want || (res.StatusCode == http.StatusOK) != (want != "") {
			t.Errorf("%s: the server got %q with status %d", path, got, res.StatusCode)
		}
	}
}
