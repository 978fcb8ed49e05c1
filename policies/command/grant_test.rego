package fumehood.command

test_grant_a_test_starts_what_it_built if granted("go test ./...") == {"grant.built"}

test_grant_a_reader_starts_nothing if granted("cat x") == set()
