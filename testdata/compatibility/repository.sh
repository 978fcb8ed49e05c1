# SPDX-License-Identifier: Apache-2.0
# Makes a git repository of 3,000 files and 400 commits in the working directory, and 60 files to compile in c.
set -e
git init -q -b main
python3 - <<'P'
with open("stream", "w") as out:
    def write(name, body):
        out.write(f"M 100644 inline {name}\ndata {len(body)}\n{body}\n")

    for c in range(400):
        out.write(f"commit refs/heads/main\ncommitter a <a@example.com> {1000000000 + c} +0000\ndata 1\nc\n")
        for f in [c % 300] if c else range(3000):
            write(f"d{f % 50}/f{f}", "".join(f"word needle other {f + i}\n" for i in range(20)) + f"changed {c}\n")
        write("blamed", "".join(f"line {i}\n" for i in range(c + 1)))
P
git fast-import --quiet <stream
rm stream
git reset -q --hard
git gc -q
mkdir c
for i in $(seq 60); do
	printf '#include <stdio.h>\nint f%d(int x) { printf("%%d", x); return x + %d; }\n' "$i" "$i" >"c/f$i.c"
done
printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n' >c/makefile
