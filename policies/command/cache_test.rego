package fumehood.command_test

import data.fumehood.command

kept(text) if count(command.cache) > 0 with input as fumehood.parse(text)

test_steady if {
	every text in ["gofmt -l .", "go vet ./...", "shfmt -d a.sh"] { kept(text) }
}

test_not_steady if {
	every text in ["gofmt -w .", "go test ./...", "go vet -vettool=./x ./...", "go build -o x .", "gofmt -l /etc", "gofmt -cpuprofile=x -l ."] { not kept(text) }
}
