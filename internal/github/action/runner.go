// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Runner is the runner's description of itself and this job.
type Runner struct {
	Repository  string // owner/name of the workflow's repository
	ServerURL   string // without a trailing slash
	APIURL      string // without a trailing slash; on GitHub Enterprise it ends in /api/v3
	EventName   string
	EventPath   string // the event's payload
	Workspace   string
	Temp        string
	ToolCache   string // "" if the runner has none
	Workflow    string // name or path; may be chosen by a pull request
	WorkflowRef string // owner/name/path@ref; "" if unknown
	Job         string
	SHA         string // full; "" if unknown
	OS          string // "Linux", "Windows" or "macOS"
	Arch        string // "X64", "ARM64", …
	Environment string // "github-hosted", "self-hosted" or ""
	RunID       int64
	RunNumber   int
	Attempt     int
	Output      string // the file of this step's outputs
	Summary     string // the file of this step's summary
	Debug       bool
}

// ReadRunner reads the runner's variables. If one is missing or malformed, the
// error is a StopError with the code runner.not-a-runner or runner.variable.
func ReadRunner(getenv func(string) string) (Runner, error) {
	if getenv("GITHUB_ACTIONS") != "true" {
		return Runner{}, &proposal.StopError{Code: "runner.not-a-runner",
			Message: "not a job of GitHub Actions: GITHUB_ACTIONS is not true",
			Hint:    "run locally with: fumehood run --plan plan.yaml"}
	}
	v := variables{getenv: getenv}
	r := Runner{
		Repository: v.readMatching("GITHUB_REPOSITORY", repositoryName, "owner/name"),
		ServerURL:  v.readURL("GITHUB_SERVER_URL"), APIURL: v.readURL("GITHUB_API_URL"),
		EventName: v.readMatching("GITHUB_EVENT_NAME", eventName, "an event's name"),
		EventPath: v.readPath("GITHUB_EVENT_PATH"),
		Workspace: v.readPath("GITHUB_WORKSPACE"), Temp: v.readPath("RUNNER_TEMP"),
		ToolCache: v.readOptional("RUNNER_TOOL_CACHE", v.readPath),
		Workflow:  v.readText("GITHUB_WORKFLOW"), WorkflowRef: v.readText("GITHUB_WORKFLOW_REF"),
		Job: v.readMatching("GITHUB_JOB", jobName, "a job's id"), SHA: v.readSHA("GITHUB_SHA"),
		OS: v.readText("RUNNER_OS"), Arch: v.readText("RUNNER_ARCH"), Environment: v.readText("RUNNER_ENVIRONMENT"),
		RunID: v.readNumber("GITHUB_RUN_ID"), RunNumber: int(v.readNumber("GITHUB_RUN_NUMBER")),
		Attempt: int(v.readNumber("GITHUB_RUN_ATTEMPT")),
		Output:  v.readPath("GITHUB_OUTPUT"), Summary: v.readPath("GITHUB_STEP_SUMMARY"),
		Debug: getenv("RUNNER_DEBUG") == "1",
	}
	if v.err != nil {
		return Runner{}, v.err
	}
	return r, nil
}

// isEnterpriseServer reports whether the runner is one of a GitHub Enterprise Server, as the actions
// that upload artifacts do. A server on this machine, as in tests, is not.
func (r Runner) isEnterpriseServer() bool {
	u, err := url.Parse(r.ServerURL)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	ip := net.ParseIP(host)
	return host != "github.com" && !strings.HasSuffix(host, ".ghe.com") && host != "localhost" &&
		(ip == nil || !ip.IsLoopback())
}

// inContainer reports whether the job runs in a container: there the runner mounts
// its own directories under /__w and /__e, or, for a container action, /github.
func (r Runner) inContainer() bool {
	return strings.HasPrefix(r.Workspace, "/__w/") || strings.HasPrefix(r.Workspace, "/github/workspace")
}

var (
	repositoryName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9._-]{1,100}$`)
	loginName      = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}(\[bot\])?$`)
	eventName      = pattern.New(`^[a-z][a-z_]{0,59}$`)
	jobName        = pattern.New(`^[A-Za-z_][A-Za-z0-9_-]{0,199}$`)
	fullSHA        = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	positive       = pattern.New(`^[1-9][0-9]{0,15}$`)
)

// isRepository reports whether s is owner/name; "." and ".." are not valid names.
func isRepository(s string) bool {
	return repositoryName.MatchString(s) && !strings.HasSuffix(s, "/.") && !strings.HasSuffix(s, "/..")
}

// variables reads the environment and keeps the first error.
type variables struct {
	getenv func(string) string
	err    error
}

func (v *variables) refuseVariable(name, want string) {
	if v.err == nil {
		v.err = &proposal.StopError{Code: "runner.variable",
			Message: fmt.Sprintf("invalid %s %s: want %s", name, quoteUntrusted(v.getenv(name)), want),
			Hint:    "remove " + name + " from earlier steps and env: blocks: the runner sets it"}
	}
}

func (v *variables) readOptional(name string, read func(string) string) string {
	if v.getenv(name) == "" {
		return ""
	}
	return read(name)
}

func (v *variables) readSHA(name string) string {
	return v.readOptional(name, func(name string) string { return v.readMatching(name, fullSHA, "a full commit SHA") })
}

func (v *variables) readMatching(name string, grammar *pattern.Pattern, want string) string {
	value := v.getenv(name)
	if !grammar.MatchString(value) || grammar == repositoryName && !isRepository(value) {
		v.refuseVariable(name, want)
	}
	return value
}

func (v *variables) readText(name string) string {
	value := v.getenv(name)
	if len(value) > maxInput || strings.ContainsFunc(value, unicode.IsControl) {
		v.refuseVariable(name, "one line of text")
	}
	return value
}

func (v *variables) readNumber(name string) int64 {
	value := v.getenv(name)
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || !positive.MatchString(value) {
		v.refuseVariable(name, "a positive number")
	}
	return n
}

func (v *variables) readPath(name string) string {
	value := v.getenv(name)
	if !filepath.IsAbs(value) || len(value) > maxInput || strings.ContainsFunc(value, unicode.IsControl) {
		v.refuseVariable(name, "an absolute path")
	}
	return filepath.Clean(value)
}

func (v *variables) readURL(name string) string {
	value := strings.TrimSuffix(v.getenv(name), "/")
	u, err := url.Parse(value)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "",
		u.Fragment != "",
		len(value) > maxInput, strings.ContainsAny(value, "?#"):
		v.refuseVariable(name, "an http or https URL without a user, a query or a fragment")
	}
	return value
}
