// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Engine with another context differs from the first in nothing else.
func TestWithContextCopiesAll(t *testing.T) {
	e, err := New(t.Context(), Options{AllowTools: []string{"acmelint"}, Workspace: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.WithContext(proposal.Context{Repository: "o/r"})
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"context", "contextTerm", "jobs", "dead"}
	typ := reflect.TypeFor[Engine]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		a, b := reflect.ValueOf(e).Elem().Field(i), reflect.ValueOf(other).Elem().Field(i)
		if same := a.Kind() == b.Kind() && a.IsZero() == b.IsZero(); !same && !slices.Contains(own, name) {
			t.Errorf("the field %s is lost", name)
		}
	}
	if !slices.Equal(e.tools, other.tools) || e.digest != other.digest || e.workspace != other.workspace {
		t.Errorf("%q, %q, %q", other.tools, other.digest, other.workspace)
	}
}
