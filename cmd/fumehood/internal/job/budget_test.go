// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
)

var (
	writer = github.Author{Login: "mona", ID: 1, Type: "User"}
	reader = github.Author{Login: "eve", ID: 2, Type: "User"}
	listed = github.Author{Login: "reviewer[bot]", ID: 41, Type: "Bot"}
	other  = github.Author{Login: "other[bot]", ID: 42, Type: "Bot"}
	gone   = github.Author{}
)

// The day's budget counts the runs of those who may start one, and of those who are not
// known; the present run is not spent yet.
func TestDayRuns(t *testing.T) {
	crowd := map[github.Author]int{}
	for i := range maxPermissions + 1 {
		crowd[github.Author{Login: fmt.Sprint("reader", i), ID: int64(100 + i), Type: "User"}] = 2
	}
	for name, test := range map[string]struct {
		by   map[github.Author]int
		want int
	}{
		"none":                  {nil, 0},
		"the present one":       {map[github.Author]int{writer: 1}, 0},
		"a writer's":            {map[github.Author]int{writer: 5}, 4},
		"a reader's":            {map[github.Author]int{writer: 1, reader: 100}, 0},
		"a listed bot's":        {map[github.Author]int{listed: 3, writer: 1}, 3},
		"another bot's":         {map[github.Author]int{other: 30, writer: 2}, 1},
		"a deleted account's":   {map[github.Author]int{gone: 3, writer: 1}, 3},
		"more than can be read": {crowd, 2*(maxPermissions+1) - 1},
	} {
		got, err := dayRuns(test.by, []int64{listed.ID}, permissionOf)
		if err != nil || got != test.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, test.want)
		}
	}
	if n, err := dayRuns(map[github.Author]int{reader: 1}, nil, func(string) (string, error) { return "", errors.New("unreachable") }); err == nil {
		t.Errorf("a permission that cannot be read: %d and no error", n)
	}
}

// permissionOf are the permissions that the API returns.
func permissionOf(login string) (string, error) {
	return map[string]string{"mona": "write", "eve": "read", "other[bot]": "write"}[login], nil
}

func TestMayStart(t *testing.T) {
	for level, want := range map[string]bool{"": false, "none": false, "read": false, "triage": false, "write": true, "maintain": true, "admin": true} {
		got, err := mayStart(writer, 1, nil, func(string) (string, error) { return level, nil })
		if err != nil || got != want {
			t.Errorf("%q: %t, %v", level, got, err)
		}
	}
}

func TestMidnight(t *testing.T) {
	want := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, now := range []time.Time{want, noon, want.Add(24*time.Hour - 1), noon.In(time.FixedZone("", 13*3600))} {
		if got := midnight(now); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s: %s", now, got)
		}
	}
}

func TestWorkflowFile(t *testing.T) {
	for ref, want := range map[string]string{
		"": "", "mona/app/.github/workflows/bot.yml@refs/heads/main": ".github/workflows/bot.yml", "mona/other/x.yml@v1": "mona/other/x.yml",
	} {
		if got := (&Job{runner: action.Runner{Repository: "mona/app", WorkflowRef: ref}}).workflowFile(); got != want {
			t.Errorf("%q: %q, want %q", ref, got, want)
		}
	}
}
