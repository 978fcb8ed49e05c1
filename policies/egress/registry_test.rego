package fumehood.egress

test_a_registry_is_read_and_never_written_to if {
	read := object.union(of_npm, {"kind": "request", "protocol": "https", "method": "GET", "path": "/x"})
	allowed(read) == {"egress.registry-read"}
	denied(read) == set()
	denied(object.union(read, {"method": "PUT"})) == {"egress.registry-method"}
	denied(object.union(read, {"path": "/-/whoami"})) == {"egress.publish"}
}

test_a_registry_is_always_seen if {
	given := intercept with input as object.union(base, of_npm)
	given == {{"rule": "egress.registry-seen"}}
}
