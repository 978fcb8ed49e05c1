// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"io"
	"os"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An About is what a job tells fumehood run about the pull request: run itself sees a
// directory. It is a file, not flags, because it holds untrusted text.
type About struct {
	Repository string `json:"repository"`
	Fork       string `json:"fork,omitempty"`
	PR         int    `json:"pull_request"`
	HeadSHA    string `json:"head_sha"`
	BaseSHA    string `json:"base_sha,omitempty"`
	// MergeBase is the commit on which commands that fail are run, too; "" for none.
	MergeBase string `json:"merge_base,omitempty"`
	// TreeLeft are those of Left that are parts of the tree of the commit.
	TreeLeft   []string           `json:"tree_left,omitempty"`
	Left       []string           `json:"left,omitempty"`
	Unenforced []string           `json:"not_enforced,omitempty"`
	Ceiling    proposal.Limits    `json:"ceiling"`
	Approval   *proposal.Approval `json:"approval,omitempty"`
	// Cwd is the directory of the repository that proposals' own are relative to.
	Cwd string `json:"working_directory,omitempty"`
	// Policies says where the directories that flags name came from.
	Policies map[string]proposal.PolicyOrigin `json:"policies,omitempty"`
}

const maxAbout = 1 << 20

// ReadAbout reads the file that --about names; without one it returns the zero About. Its
// errors are StopErrors, code about.invalid.
func ReadAbout(path string) (About, error) {
	var a About
	if path == "" {
		return a, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return a, aboutError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAbout+1))
	if err == nil && len(data) > maxAbout {
		err = fmt.Errorf("it is larger than %d bytes", maxAbout)
	}
	if err != nil {
		return a, aboutError(path, err)
	}
	if err := strictjson.Decode(data, &a); err != nil {
		return About{}, aboutError(path, err)
	}
	return a, nil
}

func aboutError(path string, err error) error {
	return &proposal.StopError{Code: "about.invalid", Message: fmt.Sprintf("cannot read %q", path),
		Hint: "omit --about on the command line: fumehood action writes that file", Err: err}
}

// Subject is what the gate's reports say of the pull request.
func (a About) Subject() Subject {
	return Subject{Repository: a.Repository, Fork: a.Fork, PR: a.PR, HeadSHA: a.HeadSHA, BaseSHA: a.BaseSHA,
		Cwd: a.Cwd, Left: a.Left, Unenforced: a.Unenforced, Approval: a.Approval}
}
