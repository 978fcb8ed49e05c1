// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// secretVariables are the variables that may hold a credential in a job.
var secretVariables = []string{
	"INPUT_GITHUB_TOKEN", "INPUT_ORGANIZATION_TOKEN", "INPUT_AUDIT_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN",
	"ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_STEP_DEBUG_TOKEN",
	"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", // of package review/model
}

// minSecret is the minimum length of a credential: masking "a" would make the log
// unreadable.
const minSecret = 8

// ListSecrets lists what must be masked: the values of every variable that may hold a
// credential, and the forms in which tools print them (base64 alone and after
// "x-access-token:", as in git's header, hexadecimal, and in a URL). The list has
// no duplicates.
func ListSecrets(getenv func(string) string) []string {
	var list []string
	for _, name := range secretVariables {
		value := strings.TrimSpace(getenv(name))
		if len(value) < minSecret {
			continue
		}
		for _, form := range secretForms(value) {
			if !slices.Contains(list, form) {
				list = append(list, form)
			}
		}
	}
	return list
}

func secretForms(secret string) []string {
	list := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for _, text := range []string{secret, secret + "\n", "x-access-token:" + secret,
		"x-access-token:" + secret + "\n"} {
		list = append(list, base64.StdEncoding.EncodeToString([]byte(text)),
			base64.RawStdEncoding.EncodeToString([]byte(text)),
			base64.URLEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	return list
}
