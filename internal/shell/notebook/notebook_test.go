// SPDX-License-Identifier: Apache-2.0

package notebook

import (
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, x := range []struct{ cell, want string }{
		{"x = 1\nx", "x = 1\nx"},
		{"  x = 1\n  if x:\n    print(x)", "x = 1\nif x:\n  print(x)"},
		{"    # why\nif a:\n    b", "    # why\nif a:\n    b"},
		{"!ls -l 'a b'", `get_ipython().system('ls -l \'a b\'')`},
		{"if x:\n    !ls\n", "if x:\n    get_ipython().system('ls')\n"},
		{"!!ls", `get_ipython().getoutput('ls')`},
		{"files = !ls | head -3", `files = get_ipython().getoutput('ls | head -3')`},
		{"a, b = %cd docs", `a, b = get_ipython().run_line_magic('cd', 'docs')`},
		{"%matplotlib inline\nimport x", "get_ipython().run_line_magic('matplotlib', 'inline')\nimport x"},
		{"!echo a \\\n  b\nx", "get_ipython().system('echo a b')\n\nx"},
		{"%%bash -e\necho 'a'\necho b", "get_ipython().run_cell_magic('bash', '-e', 'echo \\'a\\'\\necho b')\n\n"},
		{"\n%%time\nx = 1", "\nget_ipython().run_cell_magic('time', '', 'x = 1')\n"},
		{"x = 1\n%%time\ny", "x = 1\n%%time\ny"},
		{"len?", `get_ipython().run_line_magic('pinfo', 'len')`},
		{"os.path??", `get_ipython().run_line_magic('pinfo2', 'os.path')`},
		{"?len", `get_ipython().run_line_magic('pinfo', 'len')`},
		{"%%time?", `get_ipython().run_line_magic('pinfo', '%%time')`},
		// Python that looks like it.
		{"x = (5\n% 3)", "x = (5\n% 3)"},
		{"x = 5 \\\n% 3", "x = 5 \\\n% 3"},
		{"s = '''\n!ls\n%cd x\nwhat?\n'''", "s = '''\n!ls\n%cd x\nwhat?\n'''"},
		{"s = \"\"\"it's\n!ls\"\"\"\n!pwd", "s = \"\"\"it's\n!ls\"\"\"\nget_ipython().system('pwd')"},
		{"f(a, # (\n)\n!ls", "f(a, # (\n)\nget_ipython().system('ls')"},
		{"x != 1", "x != 1"},
		{"x = 'a' # what?", "x = 'a' # what?"},
		{"s = 'it\\'s'\n!ls", "s = 'it\\'s'\nget_ipython().system('ls')"},
		{"", ""},
	} {
		if got := Translate(x.cell); got != x.want {
			t.Errorf("%q:\ngot  %q\nwant %q", x.cell, got, x.want)
		}
	}
}

// Any cell has as many lines as before, and none of what is translated becomes another line.
func FuzzTranslate(f *testing.F) {
	for _, cell := range []string{"%%bash\nx\\\n'", "!a\\", "x = !\\\n\\\n", "  %x\r\n\t!y", "'''\n!x", "a?\n??b"} {
		f.Add(cell)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		got := Translate(cell)
		if strings.Count(got, "\n") != strings.Count(cell, "\n") {
			t.Errorf("%q: %q", cell, got)
		}
		if again := Translate(got); again != got && !strings.HasPrefix(strings.TrimLeft(got, "\n"), "%") && strings.TrimLeft(got, " \t\r\n") == got {
			t.Errorf("%q: %q, then %q", cell, got, again)
		}
	})
}
