// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

const maxHeaders = 10

// headerWord matches a header's name and a variable's. It does not match a value
// with blanks or signs, which a user might write instead.
var headerWord = pattern.New(`^[A-Za-z0-9-]{1,100}=[A-Za-z_][A-Za-z0-9_]{0,200}$`)

// readURL reads a URL. Its user checks further requirements.
func (r *inputReader) readURL(input, hint string) string {
	value, ok := r.readLine(input, hint)
	if ok && (!strings.HasPrefix(value, "https://") && !strings.HasPrefix(value, "http://") ||
		strings.ContainsAny(value, " @?#\\")) {
		r.refuseInput(input, hint, "is not an https:// URL without user, password, query and fragment")
		return ""
	}
	return value
}

// readNames reads header and variable names separated by blanks, newlines or commas. Messages
// do not quote them: a secret may have been written in place of a variable's name.
func (r *inputReader) readNames(input, hint string) []string {
	value := r.action.GetInput(inputVariableName(input))
	list := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\r\n,", c) })
	if len(list) > maxHeaders || len(value) > maxInput {
		r.refuseInput(input, hint, "names more than %d headers", maxHeaders)
		return nil
	}
	if len(list) == 0 {
		return nil
	}
	for _, word := range list {
		if !headerWord.MatchString(word) {
			r.refuseInput(input, hint, "has an entry that is not NAME=VARIABLE: the name of a header and of the variable in env: that holds its value")
			return nil
		}
	}
	return list
}
