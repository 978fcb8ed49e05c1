package fumehood.command

test_go_tests if allowed("go test ./...") == {"code.run"}

test_go_another_program if denied("go test -exec ./x ./...") == {"code.program"}

test_go_another_program_however_written if {
	every text in {
		"go test -exec=./x ./...", "go test ./... -exec ./x", "go test -exec sh .", "go test -exec \"$X\" .", "go vet -vettool ./x",
		"go build -toolexec=./x",
	} {
		denied(text) == {"code.program"}
	}
}

test_go_the_linker if denied("go build -ldflags '-extld=./x'") == {"go.toolflags"}

test_go_settings if denied("go env -w GOFLAGS=-mod=mod") == {"go.verb"}

test_go_packages_from_elsewhere if denied("go build -pkgdir /tmp/x ./...") == {"go.elsewhere"}
