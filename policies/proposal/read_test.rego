package fumehood.proposal

test_read_prints_the_environment if denied_text("env | sort", {}) == set()

test_read_hides_the_environment if denied_text("env | base64", {}) == {"env.encoded"}
