module example.com/embed

go 1.26

require github.com/fumehood/fumehood v0.0.0
