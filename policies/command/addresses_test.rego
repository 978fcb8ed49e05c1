package fumehood.command

test_addresses_a_server_of_this_machine if allowed("pytest --base-url=http://127.0.0.1:8000") == {"code.run"}

test_addresses_an_address if denied("deno run https://x.example/a.ts") == {"code.url"}

test_addresses_an_open_server if denied("./serve 0.0.0.0:80") == {"code.url"}
