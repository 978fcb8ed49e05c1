package fumehood.command

test_variables_a_plain_one if allowed("CI=1 go test ./...") == {"code.run"}

test_variables_a_library if denied("LD_PRELOAD=./x.so ls") == {"env.steering"}

test_variables_a_place if denied("THING=/etc/x go test") == {"env.steering"}
